"""Linear classifiers: speeds by differences, rests, ends, and what is refused."""

import numpy as np
import pytest

from theodolite.core import ConfigError, TheodoliteError
from theodolite.theory import LinearFlow

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(4, 6)), np.array([1.0, -1.0, 1.0, 1.0])
V = RNG.normal(size=6)
V /= np.linalg.norm(V)


def objective(flow, scale, v):
    out = scale * X @ v
    square = flow.loss == "square"
    fit = np.sum((out - Y) ** 2) if square else np.sum(np.exp(-Y * out))
    return fit + flow.decay * scale**2


@pytest.mark.parametrize("loss", ["square", "exponential"])
def test_speeds_are_those_of_differences(loss):
    flow = LinearFlow(inputs=X, labels=Y, loss=loss, decay=0.2)
    rho, moved = flow.speed(0.7, V)
    step = 1e-6
    ends = [objective(flow, 0.7 + s * step, V) for s in (1, -1)]
    assert rho == pytest.approx(-(ends[0] - ends[1]) / (2 * step), rel=1e-7)
    turn = np.eye(6)[0] - V * V[0]
    ends = [objective(flow, 0.7, V + s * step * turn) for s in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * step)
    assert moved @ turn == pytest.approx(-slope, rel=1e-6)
    assert moved @ V == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("loss", ["square", "exponential"])
@pytest.mark.parametrize("scale", [0.1, 2.0, -0.5])
def test_flows_with_decay_end_at_the_rest(loss, scale):
    flow = LinearFlow(inputs=X, labels=Y, loss=loss, decay=0.3)
    scales, directions = flow.integrate(scale, V, [80.0])
    np.testing.assert_allclose(scales[-1] * directions[-1], flow.rest(), atol=1e-7)


def test_flows_without_decay_interpolate_above_the_least_norm():
    flow = LinearFlow(inputs=X, labels=Y)
    scales, directions = flow.integrate(0.1, V, [100.0])
    np.testing.assert_allclose(scales[-1] * X @ directions[-1], Y, atol=1e-7)
    assert abs(scales[-1]) > np.linalg.norm(flow.rest()) + 1e-3
    np.testing.assert_allclose(X @ flow.rest(), Y, atol=1e-12)


def test_the_rest_of_the_exponential_loss_is_stationary():
    flow = LinearFlow(inputs=X, labels=Y, loss="exponential", decay=0.01)
    w = flow.rest()
    scale = float(np.linalg.norm(w))
    rho, moved = flow.speed(scale, w / scale)
    assert rho == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(moved, 0, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: LinearFlow(inputs=X, labels=Y, decay=-1.0), "negative"),
        (lambda: LinearFlow(inputs=X, labels=Y[:2]), "labels"),
        (lambda: LinearFlow(inputs=X, labels=Y, loss="exponential").rest(), "decay"),
        (lambda: LinearFlow(inputs=X, labels=Y).integrate(1.0, 0 * V, [1.0]), "zero"),
        (lambda: LinearFlow(inputs=X, labels=Y).integrate(1.0, V, [1.0, 0.5]), "rise"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, match):
    with pytest.raises(TheodoliteError, match=match) as caught:
        call()
    assert isinstance(caught.value, ConfigError)

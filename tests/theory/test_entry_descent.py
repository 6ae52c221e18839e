"""One entry-normalised layer: its smoothness, infimum, rate and guarantee."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from theodolite.core import ConfigError
from theodolite.theory import EntryDescent

EYE = np.eye(3)


def layer_of(seed, epsilon=1.0, samples=3, features=4):
    x = np.random.default_rng(seed).normal(size=(samples, features))
    return EntryDescent(inputs=x, labels=np.eye(samples), epsilon=epsilon)


def slopes(layer, w):
    eps = layer.epsilon
    return layer.gradient(w / np.sqrt(eps + w**2)) * eps / (eps + w**2) ** 1.5


def descended(layer, w, rate, steps):
    for _ in range(steps):
        w = w - rate * slopes(layer, w)
    return layer.loss(w / np.sqrt(layer.epsilon + w**2))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_no_hessian_exceeds_the_smoothness(epsilon):
    layer = layer_of(0, epsilon)
    rng = np.random.default_rng(1)
    largest = 0.0
    for _ in range(50):
        w, h = rng.normal(size=(3, 4)) * np.sqrt(epsilon), 1e-6 * np.sqrt(epsilon)
        columns = [
            (slopes(layer, w + h * e) - slopes(layer, w - h * e)).ravel() / (2 * h)
            for e in np.eye(12).reshape(12, 3, 4)
        ]
        largest = max(largest, np.linalg.norm(columns, 2))
    assert 0.02 * layer.smoothness < largest <= layer.smoothness


def test_the_gradient_is_that_of_the_loss():
    layer, a = layer_of(2), np.random.default_rng(0).uniform(-1, 1, (3, 4))
    for e in np.eye(12).reshape(12, 3, 4):
        result = (layer.loss(a + 1e-6 * e) - layer.loss(a - 1e-6 * e)) / 2e-6
        assert np.sum(layer.gradient(a) * e) == pytest.approx(result, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_no_point_of_the_cube_is_below_the_infimum(seed):
    layer = layer_of(seed)
    least = layer.infimum()
    assert least.error < 1e-6
    rng = np.random.default_rng(seed)
    for _ in range(200):
        corner = np.sign(rng.normal(size=(3, 4)))
        near = np.clip(least.weights + 0.1 * rng.normal(size=(3, 4)), -1, 1)
        assert min(layer.loss(corner), layer.loss(near)) >= least.value - least.error


def test_divergence_falls_by_what_the_flow_gains():
    # d/dt D(u, A) = grad G(A) . (u - A), by differences along the flow.
    layer, rng = layer_of(3, 0.5), np.random.default_rng(4)
    w, u = rng.normal(size=(3, 4)), rng.uniform(-0.9, 0.9, (3, 4))
    step = 1e-6
    moved = [layer._divergence(u, w - s * slopes(layer, w)) for s in (step, -step)]
    a = w / np.sqrt(0.5 + w**2)
    wanted = np.sum(layer.gradient(a) * (u - a))
    assert (moved[0] - moved[1]) / (2 * step) == pytest.approx(wanted, rel=1e-6)
    assert layer._divergence(a, w) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("size", [0.01, 1.0, 4.0])
@pytest.mark.parametrize("share", [0.5, 1.9])
def test_descent_keeps_its_guarantee(size, share):
    layer = layer_of(5)
    rate = share / layer.smoothness
    w = size * np.random.default_rng(6).normal(size=(3, 4))
    for steps in (10, 300):
        excess = descended(layer, w, rate, steps) - layer.infimum().value
        assert 0 < excess <= layer.guarantee(w, rate, steps)


def test_the_guarantee_vanishes_like_a_root():
    layer = layer_of(5)
    w, rate = np.zeros((3, 4)), 1 / layer.smoothness
    bounds = [layer.guarantee(w, rate, n) for n in (10**10, 10**12)]
    power = np.log10(bounds[1] / bounds[0]) / 2
    assert power == pytest.approx(-0.5, abs=0.03)
    # Twice the law: the divergence is spent in full, though half of it is needed.
    law = layer.rate_constant(rate) / 10**6
    assert 1 < bounds[1] / law < 2.5


def test_the_flow_comes_to_its_law():
    layer = layer_of(1)
    time = 1e6
    excess = layer.integrate(np.zeros((3, 4)), [time])[0] - layer.infimum().value
    assert_allclose(excess * np.sqrt(time), layer.rate_constant(1.0), rtol=0.02)


def test_data_need_not_be_independent():
    x = np.array([[1.0, 2.0], [2.0, 4.0], [-1.0, 0.5]])
    layer = EntryDescent(inputs=x, labels=EYE)
    w, rate = np.full((3, 2), 0.1), 1 / layer.smoothness
    result = descended(layer, w, rate, 3000) - layer.infimum().value
    assert 0 < result < layer.guarantee(w, rate, 3000)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"labels": np.ones((3, 3))}, "labels do not sum to 1"),
    ],
)
def test_bad_input_is_a_sentence(given, said):
    with pytest.raises(ConfigError, match=said):
        EntryDescent(**{"inputs": EYE, "labels": EYE, **given})


def test_steps_without_a_guarantee_are_refused():
    layer, w = layer_of(0), np.zeros((3, 4))
    for share in (2, 3):
        with pytest.raises(ConfigError, match="not below 2/beta"):
            layer.guarantee(w, share / layer.smoothness, 5)
    for times in ([2.0, 1.0], [0.0, 1.0], []):
        with pytest.raises(ConfigError, match="do not rise"):
            layer.integrate(np.zeros((3, 4)), times)
    for call in (layer.rate_constant, lambda rate: layer.guarantee(w, rate, 5)):
        with pytest.raises(ConfigError, match=r"rate is 0\.0: pass a positive one"):
            call(0.0)


@pytest.mark.parametrize(("epsilon", "x", "w"), [(1.0, 1.0, 0.0), (0.5, 2.0, 0.7)])
def test_one_sample_of_one_feature_is_as_by_hand(epsilon, x, w):
    """Two weights, whose best are 1 and -1; bounds by the docstring's formulas."""
    layer = EntryDescent(inputs=[[x]], labels=[[1.0, 0.0]], epsilon=epsilon)
    least, slope = np.log1p(np.exp(-2 * x)), x / (1 + np.exp(2 * x))
    beta = (x**2 / 2 + np.sqrt(2) * 1.5 * 0.8**2.5 * x) / epsilon
    assert layer.smoothness == pytest.approx(beta)
    rate, steps = 0.8 / beta, 50
    law = 0.25 * np.sqrt(epsilon / rate) * 2 * np.sqrt(slope)
    assert layer.rate_constant(rate) == pytest.approx(law, rel=1e-6)

    def divergence(u, a):  # by its definition, from the second derivative alone
        bent = quad(lambda s: (u - s) * epsilon / (1 - s**2) ** 3, a, u)
        return bent[0]

    a, away = w / np.sqrt(epsilon + w**2), []
    for near in np.geomspace(1e-9, 1.0, 80)[40:]:
        far = divergence(1 - near, a) + divergence(near - 1, -a)
        loss = np.log1p(np.exp(-2 * x * (1 - near)))
        away.append(loss - least + far / (rate * steps))
    kappa = 6 * rate**2 / epsilon * (
        (x * epsilon) ** (2 / 3) + rate**2 * (x**2 / epsilon) ** (4 / 3)
    )  # fmt: skip
    fall = (np.log1p(np.exp(-2 * x * a)) - least) / (rate * (1 - beta * rate / 2))
    rest = kappa / rate * 2 ** (1 / 3) * fall ** (2 / 3) * steps ** (-2 / 3)
    result = layer.guarantee([[w], [-w]], rate, steps)
    assert result == pytest.approx(min(away) + rest, rel=1e-6)

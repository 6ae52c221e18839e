"""The tangent kernel's lower bound: closed forms, and what is too large to compute."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    ConvolutionLayer,
    FlattenLayer,
    NonlinearLayer,
    ResidualLayer,
    SystemBlueprint,
    stream,
)
from theodolite.theory import system_jacobian, system_regularity
from theodolite.theory.systems import kernel_bounds
from theodolite.theory.systems.jacobians import (
    dense,
    input_jacobian,
    layer_value,
    matrix_of,
    parameter_jacobian,
)

X = stream(0, "data").normal(size=(3, 4))
W = stream(0, "weights").normal(size=(2, 4))
TANH = NonlinearLayer(activation="tanh")


def least(matrix):
    return np.linalg.eigvalsh(matrix @ matrix.T)[0]


def bound(layers, weights, x=X):
    plan = SystemBlueprint(inputs=x.shape[1:], layers=layers)
    result = system_regularity(plan, weights, x)
    true = least(system_jacobian(plan, weights, x))
    assert result.bound <= true + 1e-12
    return result, true


@pytest.mark.parametrize("way", ["plain", "weight_norm", "entry_norm"])
@pytest.mark.parametrize("bias", [False, True])
def test_one_layer_is_its_own_kernel(way, bias):
    layer = AffineLayer(into=4, out=2, parameterisation=way, eps=0.3, bias=bias)
    weights = {"weight": W} | ({"bias": np.zeros(2)} if bias else {})
    result, true = bound((layer,), [weights])
    assert_allclose(result.bound, true, rtol=1e-10)


def test_terms_are_products():
    second = np.diag([2.0, 3.0])
    layers = (AffineLayer(into=4, out=2), AffineLayer(into=2, out=2))
    result, _ = bound(layers, [{"weight": W}, {"weight": second}])
    assert_allclose(result.onward[1], 4.0)
    assert_allclose(result.own[0], least(X), rtol=1e-10)
    assert_allclose(result.terms, [4 * result.own[0], 0.0], rtol=1e-10)  # N > 2 inputs


def test_slopes_count_by_their_least_square():
    layers = (AffineLayer(into=4, out=2), TANH)
    result, _ = bound(layers, [{"weight": W}, {}])
    slope = 1 - np.tanh(X @ W.T) ** 2
    assert_allclose(result.onward[1], slope.min() ** 2)


def test_nothing_passes_through_a_batch_norm_or_more_features():
    wide = AffineLayer(into=2, out=3)
    layers = (AffineLayer(into=4, out=2), wide)
    result, _ = bound(layers, [{"weight": W}, {"weight": np.ones((3, 2))}])
    assert result.terms[0] == 0
    layers = (AffineLayer(into=4, out=2), BatchNormLayer(features=2))
    result, true = bound(layers, [{"weight": W}, {}])
    assert result.onward[1] == result.bound == 0
    assert abs(true) < 1e-9


def block():
    inner = AffineLayer(into=4, out=4, parameterisation="weight_norm", scale=0.3)
    layers = (AffineLayer(into=4, out=4), ResidualLayer(branch=(inner, TANH, inner)))
    rng = stream(1, "block")
    one, two, three = ({"weight": rng.normal(size=(4, 4))} for _ in range(3))
    return layers, [one, (two, {}, three)]


@pytest.mark.parametrize("name", ["LARGEST_DENSE", "LARGEST_STACK"])
def test_what_is_too_large_is_bounded_and_said(name, monkeypatch):
    exact, true = bound(*block())
    assert not exact.notes
    monkeypatch.setattr(kernel_bounds, name, 1)
    rough, _ = bound(*block())
    assert 0 <= rough.bound <= exact.bound < true
    assert all(note.startswith("layer ") for note in rough.notes)
    assert any("bounded from its branch's layers" in note for note in rough.notes)


def test_convolutions_are_their_toeplitz_matrices():
    image = stream(2, "image").normal(size=(2, 1, 3, 3))
    layers = (
        ConvolutionLayer(into=1, out=1, kernel=(1, 1)),
        ConvolutionLayer(into=1, out=1, kernel=(2, 2)),
        FlattenLayer(),
    )
    kernels = [np.full((1, 1, 1, 1), 2.0), stream(3).normal(size=(1, 1, 2, 2))]
    weights = [{"weight": kernels[0]}, {"weight": kernels[1]}, {}]
    result, _ = bound(layers, weights, image)
    assert_allclose(result.onward[0], 4.0)
    assert result.onward[1] > 0
    assert result.own[0] == 0  # one parameter for many outputs


def by_differences(value, at):
    """Columns of central differences, rows by feature and then by sample."""
    steps = 1e-6 * np.eye(at.size).reshape(at.size, *at.shape)
    columns = [(value(at + step) - value(at - step)) / 2e-6 for step in steps]
    return np.stack([np.moveaxis(c, 0, -1).ravel() for c in columns], 1)


@pytest.mark.parametrize(
    "way", ["plain", "weight_norm", "entry_norm", "length_direction"]
)
@pytest.mark.parametrize("images", [False, True])
def test_a_layers_derivatives_are_differences(way, images):
    given = {"parameterisation": way, "eps": 0.3, "scale": 0.7, "bias": True}
    layer = AffineLayer(into=4, out=2, **given)
    weights, x = {"weight": W, "lengths": np.array([0.5, -2.0])}, X
    if images:
        layer = ConvolutionLayer(
            into=1, out=2, kernel=(2, 2), stride=(2, 1), padding=(1, 0), **given
        )
        x = np.arange(24.0).reshape(2, 1, 4, 3) / 9
    weights["bias"] = np.array([0.1, 0.2])
    if way != "length_direction":
        del weights["lengths"]
    raw = (
        W
        * {
            "plain": 1,
            "weight_norm": 1 / np.sqrt(0.3 + (W**2).sum(1, keepdims=True)),
            "entry_norm": 1 / np.sqrt(0.3 + W**2),
            "length_direction": [[0.5], [-2.0]] / np.sqrt((W**2).sum(1, keepdims=True)),
        }[way]
    )
    assert_allclose(matrix_of(layer, weights), 0.7 * raw, rtol=1e-12)
    wanted = by_differences(lambda z: layer_value(layer, weights, z), x)
    result = dense(input_jacobian(layer, weights, x), len(x))
    if not images:  # columns, too, by feature and then by sample
        order = np.arange(x.size).reshape(x.shape).T.ravel()
        assert_allclose(result, wanted[:, order], atol=1e-8)
    parts = [
        by_differences(
            lambda w, n=name: layer_value(layer, {**weights, n: w}, x), value
        )
        for name, value in weights.items()
    ]
    assert_allclose(parameter_jacobian(layer, weights, x), np.hstack(parts), atol=1e-7)

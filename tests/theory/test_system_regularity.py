"""The tangent kernel's lower bound: closed forms, and what is too large to compute."""

import sys

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

X = stream(0, "data").normal(size=(3, 4))
W = stream(0, "weights").normal(size=(2, 4))
TANH = NonlinearLayer(activation="tanh")
MODULE = sys.modules["theodolite.theory.system_regularity"]


def least(matrix):
    return np.linalg.eigvalsh(matrix @ matrix.T)[0]


def bound(layers, weights, x=X):
    plan = SystemBlueprint(inputs=x.shape[1:], layers=layers)
    found = system_regularity(plan, weights, x)
    true = least(system_jacobian(plan, weights, x))
    assert found.bound <= true + 1e-12
    return found, true


@pytest.mark.parametrize("way", ["plain", "weight_norm", "entry_norm"])
@pytest.mark.parametrize("bias", [False, True])
def test_one_layer_is_its_own_kernel(way, bias):
    layer = AffineLayer(into=4, out=2, parameterisation=way, eps=0.3, bias=bias)
    weights = {"weight": W} | ({"bias": np.zeros(2)} if bias else {})
    found, true = bound((layer,), [weights])
    assert_allclose(found.bound, true, rtol=1e-10)


def test_terms_are_products():
    second = np.diag([2.0, 3.0])
    layers = (AffineLayer(into=4, out=2), AffineLayer(into=2, out=2))
    found, _ = bound(layers, [{"weight": W}, {"weight": second}])
    assert_allclose(found.onward[1], 4.0)
    assert_allclose(found.own[0], least(X), rtol=1e-10)
    assert_allclose(found.terms, [4 * found.own[0], 0.0], rtol=1e-10)  # N > 2 inputs


def test_slopes_count_by_their_least_square():
    layers = (AffineLayer(into=4, out=2), TANH)
    found, _ = bound(layers, [{"weight": W}, {}])
    slope = 1 - np.tanh(X @ W.T) ** 2
    assert_allclose(found.onward[1], slope.min() ** 2)


def test_nothing_passes_through_a_batch_norm_or_more_features():
    wide = AffineLayer(into=2, out=3)
    layers = (AffineLayer(into=4, out=2), wide)
    found, _ = bound(layers, [{"weight": W}, {"weight": np.ones((3, 2))}])
    assert found.terms[0] == 0
    layers = (AffineLayer(into=4, out=2), BatchNormLayer(features=2))
    found, true = bound(layers, [{"weight": W}, {}])
    assert found.onward[1] == found.bound == 0
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
    monkeypatch.setattr(MODULE, name, 1)
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
    found, _ = bound(layers, weights, image)
    assert_allclose(found.onward[0], 4.0)
    assert found.onward[1] > 0
    assert found.own[0] == 0  # one parameter for many outputs

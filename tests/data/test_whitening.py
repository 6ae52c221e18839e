import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from theodolite.core import ConfigError, DataError
from theodolite.data import load, whiten


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), width=st.integers(1, 8), data=st.data())
def test_whitened_rows_have_the_identity_as_second_moment(seed, width, data):
    k = data.draw(st.integers(1, width))
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((60, width)) * np.arange(1, width + 1) + 5.0
    fitted = whiten(x, k)
    white = fitted.apply(x)
    assert_allclose(white.T @ white / len(x), np.eye(k), atol=1e-12)
    assert_allclose(white.mean(axis=0), 0.0, atol=1e-12)
    assert (np.diff(fitted.eigenvalues) <= 0).all()
    peaks = np.abs(fitted.components).argmax(axis=0)
    assert (fitted.components[peaks, np.arange(k)] > 0).all()


def test_components_are_those_of_a_singular_value_decomposition():
    x = load("digits").flat()
    fitted = whiten(x, 5)
    _, s, vt = np.linalg.svd(x - x.mean(0), full_matrices=False)
    assert_allclose(fitted.eigenvalues, s[:5] ** 2 / len(x), rtol=1e-10)
    assert_allclose(np.abs(fitted.components), np.abs(vt[:5].T), atol=1e-10)


def test_mnist5k_is_whitened_to_rounding():
    x = load("mnist5k").flat()
    white = whiten(x).apply(x)
    assert_allclose(white.T @ white / 5000, np.eye(10), atol=1e-12)


def test_other_data_are_mapped_by_the_fit():
    x = np.random.default_rng(0).standard_normal((50, 4))
    fitted = whiten(x, 2)
    assert_array_equal(fitted.apply(x[:7]), fitted.apply(x)[:7])
    with pytest.raises(DataError, match=r"3 entries.*fitted to 4"):
        fitted.apply(x[:, :3])


def test_data_of_too_low_rank_are_refused():
    x = np.random.default_rng(0).standard_normal((50, 2)) @ np.ones((2, 6))
    with pytest.raises(DataError, match=r"span 1 directions, k=2 .* pass k=1"):
        whiten(x, 2)
    few = np.random.default_rng(0).standard_normal((4, 9))
    assert whiten(few, 3).components.shape == (9, 3)
    with pytest.raises(DataError, match="span 3 directions"):
        whiten(few, 4)
    with pytest.raises(DataError, match="equal"):
        whiten(np.ones((5, 3)), 1)


@pytest.mark.parametrize("k", [0, 5, 2.0, True])
def test_k_must_be_a_number_of_columns(k):
    with pytest.raises(ConfigError, match=r"k is .*: pass a whole number"):
        whiten(np.eye(4), k)


def test_what_is_no_matrix_is_refused():
    with pytest.raises(DataError, match="flat"):
        whiten(np.zeros((3, 2, 2)), 1)
    with pytest.raises(DataError, match="NaN"):
        whiten(np.array([[np.inf, 1.0]]), 1)

"""The data of appendix B: white inputs and one-hot labels, all or few of them."""

import numpy as np
import pytest

from theodolite_papers.li2016demystifying.shared.whitened import few, whitened


@pytest.mark.parametrize("name", ["digits", "mnist5k"])
def test_ten_components_are_centred_and_white_and_labels_one_hot(name):
    x, y = whitened(name, 10)
    assert x.shape[1] == y.shape[1] == 10
    np.testing.assert_allclose(x.T @ x / len(x), np.eye(10), atol=1e-12)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-12)
    assert set(np.unique(y)) == {0, 1}
    np.testing.assert_array_equal(y.sum(axis=1), 1)


def test_few_samples_have_the_second_moments_of_all():
    for whole, part in zip(
        _moments(*whitened("digits", 10)), _moments(*few("digits", 10)), strict=True
    ):
        np.testing.assert_allclose(part, whole, atol=1e-12)


def _moments(x, y):
    return [a.T @ b / len(x) for a, b in ((x, x), (y, x), (y, y))]

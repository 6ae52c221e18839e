"""The same data in other batches, and numbers that agree up to rounding."""

from itertools import pairwise

import numpy as np
import torch


def near(found, wanted, rtol=1e-10):
    """Compare arrays entry by entry, on the scale of the largest one wanted."""
    wanted = np.asarray(wanted.detach() if hasattr(wanted, "detach") else wanted)
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=rtol * scale)


def multiplies_as(operator, wanted, rtol=1e-10):
    """Compare products with random vectors with those of a matrix or an operator.

    Whatever the matrix is wrong by shows in each of them.
    """
    vectors = torch.randn(operator.shape[1], 3, dtype=torch.float64)
    exact = torch.as_tensor(wanted) if isinstance(wanted, np.ndarray) else wanted
    near(operator @ vectors, exact @ vectors, rtol)


def cut(batch, *places):
    """Cut a pair into batches at the places given."""
    ends = [0, *places, len(batch[0])]
    return [(batch[0][a:b], batch[1][a:b]) for a, b in pairwise(ends)]

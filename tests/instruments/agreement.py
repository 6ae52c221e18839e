"""The same data in other batches, and numbers that agree up to rounding."""

from itertools import pairwise

import numpy as np


def near(found, wanted, rtol=1e-10):
    """Compare arrays entry by entry, on the scale of the largest one wanted."""
    wanted = np.asarray(wanted.detach() if hasattr(wanted, "detach") else wanted)
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=rtol * scale)


def cut(batch, *places):
    """Cut a pair into batches at the places given."""
    ends = [0, *places, len(batch[0])]
    return [(batch[0][a:b], batch[1][a:b]) for a, b in pairwise(ends)]

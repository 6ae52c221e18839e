"""The data of appendix B: digits whitened to their leading components."""

from functools import cache

import numpy as np

from theodolite.data import load, moment_samples, whiten


@cache
def whitened(name: str, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs whitened to ``width`` components, and one-hot targets.

    Components in descending order of variance, the largest entry of each positive:
    the paper leaves both open, and the condition number depends on them.
    """
    dataset = load(name)
    x = whiten(dataset.flat(), k=width).apply(dataset.flat())
    return x, dataset.one_hot()


@cache
def few(name: str, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a few samples that have the second moments of all whitened data."""
    return moment_samples(*whitened(name, width))

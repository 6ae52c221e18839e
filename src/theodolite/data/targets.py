"""Targets made from labels."""

import numpy as np

from theodolite.core import DataError, Numbers, as_real, as_whole


def one_hot(labels: Numbers, n_classes: int) -> np.ndarray:
    """Return float64 targets (N, n_classes) with one 1 in each row.

    Example:
        >>> one_hot(np.array([1, 0]), 3)
        array([[0., 1., 0.],
               [1., 0., 0.]])
    """
    labels = as_real("labels", labels, error=DataError)
    n_classes = as_whole("n_classes", n_classes, 1)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise DataError(
            f"labels have shape {labels.shape} and type {labels.dtype}: pass one whole "
            "number a sample"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < n_classes:
        raise DataError(
            f"labels run from {labels.min()} to {labels.max()}, n_classes={n_classes} "
            f"allows 0 to {n_classes - 1}: pass more classes or other labels"
        )
    targets = np.zeros((len(labels), n_classes))
    targets[np.arange(len(labels)), labels] = 1.0
    return targets

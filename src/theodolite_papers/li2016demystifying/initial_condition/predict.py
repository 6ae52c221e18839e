"""Closed forms at zero weights, and the numbers of the growth argument."""

import numpy as np

from theodolite.core import Row, Rows, ShortcutBlueprint
from theodolite.theory import conditioning_at_zero, unit_blocks

from ..shared.problems import EPS, closed
from ..shared.whitened import whitened
from .config import Config


def predict(config: Config) -> Rows:
    """Return closed forms at zero weights, for 1- and 2-shortcut networks."""
    x, y = whitened(config.dataset, config.width)
    rows: list[Row] = []
    for kind, n in (("one_shortcut", 1), ("two_shortcut", 2)):
        for depth in config.predicted_depths:
            plan = ShortcutBlueprint(width=config.width, depth=depth, shortcut=n)
            at_zero = conditioning_at_zero(plan, x, y)
            names = ("ratio", "largest", "small", "index")
            numbers = {name: getattr(at_zero, name) for name in names}
            # Rounding of the bisection, or of an SVD.
            rows += closed(numbers, 1e-13, kind=kind, depth=depth)
    return Rows(rows + _toeplitz(config, x, y))


def _toeplitz(config: Config, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """Return the numbers of the growth argument for n = 1."""
    plan = ShortcutBlueprint(width=config.width, depth=1, shortcut=1)
    a, b = unit_blocks(plan, x, y)
    k = a - b
    values, vectors = np.linalg.eigh(b + (k + k.T) / 2)
    # A vector with opposite signs on two units is stretched by a factor that does not
    # depend on the number of units: an upper bound on the smallest magnitude.
    moved = (
        np.linalg.norm(k @ vectors, axis=0) ** 2
        + np.linalg.norm(k.T @ vectors, axis=0) ** 2
    )
    numbers = {
        "slope": values[-1],
        "ceiling": np.sqrt(moved.min() / 2),
        "block_norm": np.linalg.norm(a, 2),
    }
    return closed(numbers, EPS * len(k))

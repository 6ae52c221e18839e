"""Closed forms at zero weights, and the numbers of the growth argument."""

import numpy as np

from theodolite.core import Row, Rows, ShortcutBlueprint
from theodolite.theory import conditioning_at_zero, unit_blocks

from ..shared.problems import EPS
from ..shared.whitened import whitened
from .config import Config


def predict(config: Config) -> Rows:
    """Closed forms at zero weights, for 1- and 2-shortcut networks."""
    x, y = whitened(config.dataset, config.width)
    rows: list[Row] = []
    for kind, n in (("one_shortcut", 1), ("two_shortcut", 2)):
        for depth in config.predicted_depths:
            plan = ShortcutBlueprint(width=config.width, depth=depth, shortcut=n)
            found = conditioning_at_zero(plan, x, y)
            labels = {"kind": kind, "depth": depth}
            for name in ("ratio", "largest", "small", "index"):
                value = float(getattr(found, name))
                error = 1e-13 * abs(value)  # of the bisection, or of an SVD
                row = {"quantity": name, **labels, "value": value, "error": error}
                rows.append(row)
    return Rows(rows + _toeplitz(config, x, y))


def _toeplitz(config: Config, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """Numbers of the growth argument for n = 1."""
    plan = ShortcutBlueprint(width=config.width, depth=1, shortcut=1)
    a, b = unit_blocks(plan, x, y)
    k = a - b
    values, vectors = np.linalg.eigh(b + (k + k.T) / 2)
    # A vector that differs in sign between two units is moved by an amount that does
    # not depend on the number of units: a ceiling on the smallest magnitude.
    moved = (
        np.linalg.norm(k @ vectors, axis=0) ** 2
        + np.linalg.norm(k.T @ vectors, axis=0) ** 2
    )
    ceiling = np.sqrt(moved.min() / 2)
    found = {
        "slope": values[-1],
        "ceiling": ceiling,
        "block_norm": np.linalg.norm(a, 2),
    }
    return [
        {"quantity": name, "value": float(v), "error": EPS * len(k) * float(v)}
        for name, v in found.items()
    ]

"""Hessians of networks at zero by double backward, and the pattern of their blocks."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from theodolite.core import Cell, Row, Rows, ShortcutBlueprint, condition_of

from ..shared.hessians import at_zero, measured_hessian
from ..shared.problems import EPS, SETTINGS, entries, gap, named
from .config import Config, dataset


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """One network at zero, and its Hessian."""

    setting: str
    plan: ShortcutBlueprint
    matrix: np.ndarray
    values: np.ndarray
    reading: Any

    @property
    def scale(self) -> float:
        """The largest entry; distances are given as fractions of it."""
        return max(float(np.abs(self.matrix).max()), np.finfo(float).tiny)

    @property
    def rounding(self) -> float:
        """Relative rounding of sums over the matrix, plus its asymmetry."""
        return EPS * len(self.matrix) + self.reading.asymmetry

    @property
    def labels(self) -> dict[str, Any]:
        """Labels that tell its rows from other rows of the cell."""
        return {
            "n": self.plan.shortcut,
            "setting": self.setting,
            "units": self.plan.units,
        }

    @property
    def blocks(self) -> np.ndarray:
        """A copy of the matrix as an array of blocks, one per pair of layers."""
        size = self.plan.width**2
        n = len(self.matrix) // size
        return self.matrix.reshape(n, size, n, size).transpose(0, 2, 1, 3).copy()


@lru_cache(maxsize=1)  # `combine` needs it right after, in the same cell
def hessians(config: Config, data: str, n: int, trial: int) -> tuple[Measured, ...]:
    """Measure all settings and depths of one shortcut length on one dataset."""
    x, y = dataset(config, data, trial)
    # The data are degenerate only with identity activations before the matrices.
    settings = SETTINGS if data == "random" else {"linear": SETTINGS["linear"]}
    networks = []
    for setting, names in settings.items():
        for units in config.units:
            plan = ShortcutBlueprint(
                width=config.width, depth=n * units, shortcut=n, **names
            )
            matrix, reading = measured_hessian(at_zero(plan, config.device), x, y)
            networks.append(
                Measured(
                    setting=setting,
                    plan=plan,
                    matrix=matrix,
                    values=np.linalg.eigvalsh(matrix),
                    reading=reading,
                )
            )
    return tuple(networks)


def measure(config: Config, cell: Cell) -> Rows:
    """Measure the Hessians of a cell, or the picture's entries."""
    if cell["data"] == "picture":
        x, y = dataset(config, "picture", config.seed)
        rows: list[Row] = []
        for n in (1, 2, 3):
            plan = ShortcutBlueprint(width=2, depth=3 * n, shortcut=n)
            matrix, reading = measured_hessian(at_zero(plan, config.device), x, y)
            # A row's own n tells the pictures apart; the cell's is 0 for all.
            rows += entries(matrix, max(reading.matrix_error, EPS), shortcut=n)
        return Rows(rows)
    networks = hessians(config, cell["data"], cell["n"], cell["trial"])
    return Rows([row for one in networks for row in _rows(one, cell["data"])])


def _rows(network: Measured, data: str) -> list[Row]:
    size = np.abs(network.values)
    sized = {
        "max_entry": np.abs(network.matrix).max(),
        "largest": size.max(),
        "lowest": network.values.min(),
        "gradient_norm": np.linalg.norm(network.reading.gradient),
    }
    # Sums as large as the loss round by a fraction of it; entries without a sum are 0.
    most = size.max() if data == "random" else max(size.max(), network.reading.loss)
    rows = named(sized, network.rounding * most, **network.labels)
    if network.plan.shortcut == 2:
        flat = {"flat": float(np.mean(size < 1e-10 * network.reading.loss))}
        rows += named(flat, 0.0, **network.labels)
    if data != "random":
        return rows
    shape = {1: _one_shortcut, 2: _two_shortcut}.get(network.plan.shortcut)
    if shape is not None:
        rows += named(shape(network), network.rounding, **network.labels)
    if network.plan.shortcut == 2:
        condition = condition_of(network.values, quantile=0.0)
        rows += named({"condition": condition.ratio}, condition.error, **network.labels)
    return rows


def _two_shortcut(network: Measured) -> dict[str, float]:
    """Return entries outside Eq 8's pattern, and how units differ within it."""
    blocks, units = network.blocks, range(network.plan.units)
    lower = [blocks[2 * r + 1, 2 * r].copy() for r in units]
    for r in units:
        blocks[2 * r + 1, 2 * r] = blocks[2 * r, 2 * r + 1] = 0
    return {
        "off_pattern": float(np.abs(blocks).max()) / network.scale,
        "unit_spread": max(gap(lower[0], block, network.scale) for block in lower),
    }


def _one_shortcut(network: Measured) -> dict[str, float]:
    """Return how blocks differ on one side of the diagonal, and across it."""
    blocks, units, scale = network.blocks, network.plan.units, network.scale
    sides = {
        "diagonal": [blocks[r, r] for r in range(units)],
        "below": [blocks[r, s] for r in range(units) for s in range(r)],
        "above": [blocks[r, s] for r in range(units) for s in range(r + 1, units)],
    }
    spread = max(gap(side[0], b, scale) for side in sides.values() for b in side)
    if units == 1:
        return {"block_spread": spread}
    below, above = sides["below"][0], sides["above"][0]
    return {
        "block_spread": spread,
        "coupling": float(np.abs(below).max()) / scale,
        "transposed_above": gap(below.T, above, scale),
        "same_above": gap(below, above, scale),
    }

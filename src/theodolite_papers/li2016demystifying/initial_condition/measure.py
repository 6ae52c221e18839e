"""Initial Hessians of built networks, by double backward."""

from functools import lru_cache
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Cell, Row, Rows, ShortcutBlueprint

from ..shared.hessians import measured_hessian
from ..shared.whitened import few
from .config import KINDS, Config

# Depth 32 at width 10 takes 3 matrices of 3200².
MEASURED_BYTES = 2**30


def measure(config: Config, cell: Cell) -> Rows:
    """Measure one network's initial Hessian, where it is not too deep."""
    if cell["kind"] == "conventions" or cell["depth"] > config.measured_depth:
        return Rows()
    _, reading = hessian(config, tuple(cell.items()))
    return Rows(readings(instruments.spectrum_of(reading)))


def built(config: Config, cell: Cell) -> tuple[ShortcutBlueprint, Any]:
    """Return the blueprint of a cell and its network."""
    plan = ShortcutBlueprint(
        width=config.width, depth=cell["depth"], **KINDS[cell["kind"]]
    )
    return plan, networks.build(plan, seed=cell["trial"], device=config.device)


@lru_cache(maxsize=1)  # `combine` needs it right after, in the same cell
def hessian(config: Config, key: tuple[tuple[str, Any], ...]) -> tuple[np.ndarray, Any]:
    """Measure a network's Hessian on few samples with the data's second moments."""
    _, network = built(config, dict(key))
    samples = few(config.dataset, config.width)
    return measured_hessian(network, *samples, matrix_bytes=MEASURED_BYTES)


def readings(spectrum: Any) -> list[Row]:
    """Return condition number and index with their errors, status and norm mode."""
    kept = ("ratio", "largest", "small", "index")
    rows = [*spectrum.condition().rows(), *spectrum.index().rows()]
    # The network's seed is the cell's trial; times would differ from run to run.
    dropped = ("seed", "cpu_s", "passes")
    return [
        {key: value for key, value in row.items() if key not in dropped}
        for row in rows
        if row["quantity"] in kept
    ]

"""Closed forms at the weights of trained networks.

A linear network's Hessian is known exactly from its weights and the data's second
moments; where it was measured as well, the two are compared.
"""

import numpy as np

from theodolite import networks, theory
from theodolite.core import (
    Cell,
    Row,
    Rows,
    ShortcutBlueprint,
    Status,
    condition_of,
    index_of,
    named_rows,
)

from ..shared.hessians import gap_row
from ..shared.optima import exact_optimum
from ..shared.problems import EPS
from ..shared.whitened import whitened
from .config import PAIR, Config
from .measure import arranged, blueprint, by_network, slope_rows, trained


def combine(config: Config, cell: Cell) -> Rows:
    """Return Hessians from second moments, or their distance from measured ones."""
    plan = blueprint(config, cell)
    data = theory.moments(*whitened(config.dataset, config.width))
    if cell["task"] == "start":
        return Rows(_start(plan, data, cell["trial"]))
    states = trained(config, tuple(cell.items()))
    if by_network(config, cell):
        rows = []
        for state in (one for one in states if one.reading):
            matrix = theory.linear_hessian(plan, state.weights, data)
            assert state.matrix is not None  # it comes with its reading
            row = gap_row("moments_gap", matrix, state.matrix, state.reading)
            rows.append({**row, "step": state.step})
    else:
        read = [(s, read_state(plan, s.weights, data)) for s in states]
        rows = arranged(config, cell, read)
    levels = cell["task"] == "levels"
    if levels and cell["kind"] in PAIR and cell["trial"] == config.seed:
        rows += _optimum(plan, states[-1].weights, data)
    return Rows(rows)


def read_state(
    plan: ShortcutBlueprint, weights: np.ndarray, data: theory.Moments
) -> list[Row]:
    """Return extreme eigenvalues, index and slope at given weights, with errors."""
    matrix = theory.linear_hessian(plan, weights, data)
    values = np.linalg.eigvalsh(matrix)
    size = float(np.abs(values).max()) + float(np.abs(matrix).max())
    rounding = EPS * len(values) * size
    condition = condition_of(values, rounding=rounding)
    status = str(Status.EXACT if condition.resolved else Status.ROUNDING)
    unsure = float(np.mean(np.abs(values) <= rounding))
    numbers = {
        "largest": (condition.largest, rounding, status),
        "small": (condition.small, rounding, status),
        "index": (index_of(values, rounding=rounding), unsure, str(Status.EXACT)),
    }
    method = "second moments"
    gradient = theory.linear_gradient(plan, weights, data)
    flat = gradient.transpose(0, 2, 1).ravel()  # (layer, column, row)
    return [
        *(
            {"quantity": name, "value": v, "error": e, "status": s, "method": method}
            for name, (v, e, s) in numbers.items()
        ),
        *slope_rows(flat, matrix),
    ]


def _start(plan: ShortcutBlueprint, data: theory.Moments, seed: int) -> list[Row]:
    """Return the index of a network before its first step."""
    weights = networks.initial_weights(plan, seed=seed)
    values = np.linalg.eigvalsh(theory.linear_hessian(plan, weights, data))
    rounding = EPS * len(values) * float(np.abs(values).max())
    unsure = float(np.mean(np.abs(values) <= rounding))
    return named_rows({"first_index": index_of(values, rounding=rounding)}, unsure)


def _optimum(
    plan: ShortcutBlueprint, weights: np.ndarray, data: theory.Moments
) -> list[Row]:
    """Return rank and percentile of the Hessian at an optimum near the last state."""
    best = data.yx @ np.linalg.inv(data.xx)
    there, _ = exact_optimum(plan, weights, best)
    size = np.abs(np.linalg.eigvalsh(theory.linear_hessian(plan, there, data)))
    # The map is optimal to the rounding of two inverses.
    rank = float(np.sum(size > 1e-9 * size.max()))
    excess = theory.linear_loss(plan, there, data) - data.optimal_loss()
    small = float(np.quantile(size, 0.1) / size.max())
    rounding = EPS * len(size)
    return [
        *named_rows({"optimum_rank": rank}, 0.0, parameters=len(size)),
        *named_rows({"optimum_excess": excess, "optimum_small": small}, rounding),
    ]

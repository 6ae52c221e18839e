"""Trained linear networks moved onto an exact optimum."""

import numpy as np

from theodolite.core import Cell, Rows, named_rows
from theodolite.theory import linear_loss, moments

from ..shared.optima import exact_optimum
from ..shared.problems import EPS
from ..shared.whitened import whitened
from .config import Config
from .measure import blueprint, trained


def combine(config: Config, cell: Cell) -> Rows:
    """Measure the last unit of each linear network after a move to the optimum."""
    plan = blueprint(config, cell)
    if not plan.linear:
        return Rows()
    data = moments(*whitened(config.dataset, config.width))
    best = data.yx @ np.linalg.inv(data.xx)
    rows = []
    for weights, labels in trained(config, tuple(cell.items()))[1].weights:
        there, condition = exact_optimum(plan, weights, best)
        unit = float(np.linalg.norm(there[-1] @ there[-2], ord=2))
        excess = linear_loss(plan, there, data) - data.optimal_loss()
        of = {"trial": labels["seed"], "lr": labels["lr"]}
        rounding = EPS * condition
        # The excess is quadratic in the rounding error of the map.
        square = config.width * rounding**2 + EPS * plan.depth
        rows += named_rows({"optimum_excess": excess}, square, **of)
        rows += named_rows({"optimum_unit": unit}, rounding * unit, **of)
    return Rows(rows)

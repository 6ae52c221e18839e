"""Trained linear networks moved onto an exact optimum."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Rows
from theodolite.theory import linear_loss, moments

from ..shared.exact_optimum import exact_optimum
from ..shared.whitened import whitened
from .config import Config
from .measure import blueprint, trained

EPS = float(np.finfo(np.float64).eps)


def combine(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Look at the last unit of each linear network once it is optimal."""
    plan = blueprint(config, cell)
    if not plan.linear:
        return Rows()
    data = moments(*whitened(config.dataset, config.width))
    best = data.yx @ np.linalg.inv(data.xx)
    rows = []
    for weights, labels in trained(config, tuple(cell.items()))[1].found:
        there, condition = exact_optimum(plan, weights, best)
        unit = float(np.linalg.norm(there[-1] @ there[-2], ord=2))
        excess = linear_loss(plan, there, data) - data.optimal_loss()
        named = {"trial": labels["seed"], "lr": labels["lr"]}
        rounding = EPS * condition
        # The excess is a square of what rounding does to the map.
        square = config.width * rounding**2 + EPS * plan.depth
        rows += [
            {"quantity": "optimum_excess", **named, "value": excess, "error": square},
            {
                "quantity": "optimum_unit",
                **named,
                "value": unit,
                "error": rounding * unit,
            },
        ]
    return Rows(rows)

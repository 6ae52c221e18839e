"""Trained linear networks moved onto an exact optimum."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Rows
from theodolite.studies.li2016demystifying.shared.exact_optimum import exact_optimum
from theodolite.studies.li2016demystifying.shared.whitened import whitened
from theodolite.studies.li2016demystifying.weight_norms.config import Config
from theodolite.studies.li2016demystifying.weight_norms.measure import (
    blueprint,
    trained,
)
from theodolite.theory import linear_loss, moments

EPS = float(np.finfo(np.float64).eps)


def meet(config: Config, cell: Mapping[str, Any]) -> Rows:
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

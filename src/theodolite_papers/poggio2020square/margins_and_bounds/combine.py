"""The bound at the norms that training ended with."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Row, Rows, named_rows
from theodolite.theory import frobenius_complexity, margin_bound

from ..shared.split_classes import two_digits
from .config import Config
from .measure import networks


def bounds(config: Config, measured: Rows) -> Rows:
    r"""Return the right side of the bound for each trained network.

    Norms are those of training, not fixed beforehand: the bound is made for
    $\rho = 2, 4, 8, \dots$ at once, the $j$-th with probability $\delta/(j(j+1))$, and
    the next one above is used.
    """
    inputs = two_digits(config.samples).inputs
    complexity = frobenius_complexity(inputs, config.depth)
    unit = frobenius_complexity(np.ones((1, 1)), config.depth)
    rows: list[Row] = []
    for row in measured.where(quantity="scale"):
        labels = {k: row[k] for k in ("decay", "trial")}
        step = max(1, int(np.ceil(np.log2(row["value"]))))
        settings: dict[str, Any] = {
            "gamma": 1.0,
            "samples": len(inputs),
            "delta": config.delta / (step * (step + 1)),
        }
        ramp = measured.value(quantity="ramp", **labels)
        numbers = {
            "bound": margin_bound(ramp, 2.0**step * complexity, **settings),
            "fixed_bound": margin_bound(ramp, row["value"] * complexity, **settings),
            # Samples at which twice the complexity would be 1.
            "samples_needed": float((2 * row["value"] * unit) ** 2),
        }
        rows += named_rows(numbers, 1e-9, **labels)
    return Rows(rows)


def combine(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Return bounds for the cell of networks."""
    if cell["part"] != "networks":
        return Rows()
    return bounds(config, networks(config))

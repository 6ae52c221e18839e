"""Eqs 7 and 8 at the final weights of gradient descent on real networks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Row, Rows, named_rows
from theodolite.theory import NormalisedFlow, norm_equilibrium

from .config import Config
from .measure import drawn_networks, ended, last_rate

# Pre-activations of networks that slide along a kink stay within some steps of it.
_NEAR = 8.0


def combine(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Compute equilibria and residuals at the last weights."""
    if cell["part"] != "networks":
        return Rows([])
    rho, layers, *_ = ended(config)
    rows: list[Row] = []
    for k, (trial, drawn) in enumerate(
        zip(config.seeds, drawn_networks(config), strict=True)
    ):
        weights = [w[k] for w in layers]
        flow = NormalisedFlow(
            inputs=drawn.inputs, labels=drawn.labels, decay=config.decay
        )
        f = flow.outputs(weights)
        rest = norm_equilibrium(f, drawn.labels, config.decay)
        near = _NEAR * last_rate(config)
        z = np.abs(flow.preactivations(weights)[0])
        smooth = flow.residuals(rho[k], weights)
        clarke = flow.residuals(rho[k], weights, near=near)
        numbers = {
            "rest_gap": abs(rho[k] - rest) / abs(rest),
            "first_residual": smooth[0],
            "last_residual": smooth[1],
            "clarke_residual": clarke[0],
            "least_preactivation": z.min(),
            "kinks": np.count_nonzero(z < near),
        }
        rows += named_rows(numbers, 1e-9, trial=trial)
    return Rows(rows)

"""Certified steps of the study's networks."""

from typing import Literal

import numpy as np

from theodolite.core import normalised_residual
from theodolite.studies.macdonald2023skip.global_convergence.config import (
    BRANCH_NORM,
    Config,
)
from theodolite.theory import cost_bounds, extent_of, system_bounds

# The slope of exp(-1/z) bends at most 2.6 times as much as that of the ramp, at
# z = 1/2 - 1/sqrt(12), and bounds are linear in how much it bends.
_BUMP = 2.6


def smoothness(
    config: Config,
    inputs: np.ndarray,
    widths: tuple[int, ...],
    cost: Literal["cross_entropy", "logistic", "square"],
    *,
    gate: str = "tanh",
    target_norm: float = 0.0,
) -> float:
    r"""Return a certified $\beta$ of the loss of a normalised residual network."""
    plan = normalised_residual(
        inputs=inputs.shape[1],
        widths=widths,
        eps=config.epsilon,
        branch_norm=BRANCH_NORM,
        activation="ramp" if gate == "bump" else gate,
    )
    bounds = system_bounds(plan, extent_of(inputs))
    known = cost_bounds(cost, bounds.outputs, target_norm=target_norm)
    found = bounds.smoothness(known.gradient, known.curvature)
    # Costs of the room are halved squares, ours are whole ones.
    found = 2 * found if cost == "square" else found
    return _BUMP * found if gate == "bump" else found

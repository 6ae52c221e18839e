"""A convex cost that is not PL, on networks of one unit that can fit their target."""

import numpy as np

from theodolite.core import Row, stream
from theodolite.studies.macdonald2023skip.global_convergence.config import (
    BRANCH_NORM,
    QUARTIC_RATE,
    QUARTIC_TARGET,
    Config,
)
from theodolite.studies.macdonald2023skip.shared.normalised_stack import (
    NormalisedStack,
)
from theodolite.studies.macdonald2023skip.shared.plain_descent import descend
from theodolite.studies.macdonald2023skip.shared.signed_rows import named


def quartic(config: Config) -> list[Row]:
    r"""Descend $(F - y)^4$, and return losses and the largest first-layer weight."""
    import torch

    # First outputs lie near -0.7, far from the target, so that the law sets in early.
    drawn = [
        np.array([-1.0, 0.0, 0.0])
        + 0.2 * stream(config.seed, "quartic", trial).normal(size=3)
        for trial in config.seeds
    ]
    start = [torch.tensor(w)[:, None, None] for w in np.array(drawn).T]
    stack = NormalisedStack(
        inputs=torch.ones(1, 1, 1, dtype=torch.float64),
        branch_norm=BRANCH_NORM,
        epsilon=config.epsilon,
    )
    done = descend(
        lambda w: (stack.outputs(w) - QUARTIC_TARGET).pow(4).mean(dim=(1, 2)),
        start,
        torch.full((config.n_seeds,), QUARTIC_RATE, dtype=torch.float64),
        config.near_marks,
        lambda w: w[0].abs()[:, 0, 0],
    )
    rows: list[Row] = []
    for mark, losses, sizes in zip(
        config.near_marks, done.losses, done.noted, strict=True
    ):
        for place, trial in enumerate(config.seeds):
            found = {"quartic": losses[place], "quartic_weight": sizes[place]}
            rows += named(found, 1e-18, step=mark, trial=trial)
    return rows

"""Descent on one sample after the other: where it rests, and where it does not."""

from typing import TYPE_CHECKING

import numpy as np

from theodolite.core import Row, named_rows

from ..shared.linear_descent import objectives
from .config import STARTS, Config, data, directions
from .measure_ends import final_weights

if TYPE_CHECKING:
    import torch

# Steps on one sample are stable below a rate of one over the squared norm; beyond,
# descent comes to a cycle that is the same after each epoch.
STABLE = 0.4
MOST_EPOCHS, AT_REST = 4000, 1e-9
RESTED = 1e-7  # what an epoch moves where descent is all but at rest
START = 1  # which of the starts


def samples(config: Config) -> list[Row]:
    """Descend sample by sample, without decay to the end, with decay from rest.

    With decay the start is where descent on all samples rests.
    """
    import torch

    drawn = [data(config, "wide", trial) for trial in config.seeds]
    x, y = (torch.tensor(np.array([d[k] for d in drawn])) for k in (0, 1))
    starts = [directions(config, "wide", trial)[START] for trial in config.seeds]
    v = torch.tensor(np.array(starts))
    rho = torch.full((len(v),), STARTS[START], dtype=torch.float64)
    rho, v, last = _descend(rho, v, (x, y))
    rows: list[Row] = []
    for row in _rows(config, rho, v, (x, y), 0.0):
        rested = float(last[config.seeds.index(row["trial"])]) < RESTED
        # Of an end that was not reached nothing is known.
        rows.append(row if rested else {**row, "error": None})
    weights = torch.tensor(final_weights(config, "wide", "square", 0.1)[:, START])
    rho = weights.norm(dim=1)
    return rows + _rows(config, rho, weights / rho[:, None], (x, y), 0.1)


def _descend(
    rho: "torch.Tensor", v: "torch.Tensor", sets: tuple["torch.Tensor", "torch.Tensor"]
) -> tuple["torch.Tensor", "torch.Tensor", "torch.Tensor"]:
    """Go through the samples until none moves the weights; return the last moves too.

    All are in one order, so that what an epoch moves tells whether an end was reached.
    """
    rates, last = _rates(sets), rho
    for _ in range(MOST_EPOCHS):
        before = rho[:, None] * v
        for n in range(sets[1].shape[1]):
            rho, v = _step(rho, v, sets, 0.0, rates, n)
        last = (rho[:, None] * v - before).norm(dim=1)
        if float(last.max()) < AT_REST:
            break
    return rho, v, last


def _rates(sets: tuple["torch.Tensor", "torch.Tensor"]) -> "torch.Tensor":
    import torch

    x, y = sets
    shortest = torch.linalg.lstsq(x, y[..., None], driver="gelsd").solution[..., 0]
    return STABLE / (1 + shortest.square().sum(1))


def _step(
    rho: "torch.Tensor",
    v: "torch.Tensor",
    sets: tuple["torch.Tensor", "torch.Tensor"],
    decay: float,
    rates: "torch.Tensor",
    n: int,
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Make a step on one sample, with its share of the decay, and retract."""
    by_rho, by_v = _gradients(rho, v, sets, decay, n)
    rho = rho - rates * by_rho
    v = v - rates[:, None] * by_v
    return rho, v / v.norm(dim=1, keepdim=True)


def _gradients(
    rho: "torch.Tensor",
    v: "torch.Tensor",
    sets: tuple["torch.Tensor", "torch.Tensor"],
    decay: float,
    n: int,
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Differentiate the loss of one sample by the norm and along the sphere."""
    import torch

    x, y = (part[:, n : n + 1] for part in sets)
    leaves = [t.detach().clone().requires_grad_() for t in (rho, v)]
    share = decay / sets[1].shape[1]
    value = objectives("square", leaves[0], leaves[1], (x, y), share).sum()
    by_rho, by_v = torch.autograd.grad(value, leaves)
    return by_rho, by_v - (by_v * v).sum(1, keepdim=True) * v


def _rows(
    config: Config,
    rho: "torch.Tensor",
    v: "torch.Tensor",
    sets: tuple["torch.Tensor", "torch.Tensor"],
    decay: float,
) -> list[Row]:
    """Return Eq 39 of the worst sample, and the longest step on one sample."""
    import torch

    rates = _rates(sets)
    worst = torch.zeros(len(v), dtype=torch.float64)
    longest = torch.zeros_like(worst)
    for n in range(sets[1].shape[1]):
        # The loss has a factor of two, and the direction one of the norm.
        along = _gradients(rho, v, sets, decay, n)[1].norm(dim=1) / (2 * rho.abs())
        worst = torch.maximum(worst, along)
        after = _step(rho, v, sets, decay, rates, n)
        moved = after[0][:, None] * after[1] - rho[:, None] * v
        longest = torch.maximum(longest, moved.norm(dim=1))
    rows: list[Row] = []
    for trial, residual, step in zip(config.seeds, worst, longest, strict=True):
        found = {"sample_residual": residual, "sample_step": step}
        rows += named_rows(found, 1e-9, trial=trial, decay=decay)
    return rows

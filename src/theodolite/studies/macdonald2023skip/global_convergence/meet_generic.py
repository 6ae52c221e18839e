"""Two layers under cross-entropy from many starts, and where each settles."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from theodolite.core import Row
from theodolite.studies.macdonald2023skip.global_convergence.config import (
    BRANCH_NORM,
    FAR_STARTS,
    REACHED,
    Config,
    copies_of,
    inputs,
    two_layer_start,
)
from theodolite.studies.macdonald2023skip.global_convergence.predict import layer_of
from theodolite.studies.macdonald2023skip.global_convergence.predict_steps import (
    smoothness,
)
from theodolite.studies.macdonald2023skip.shared.normalised_stack import (
    Loss,
    NormalisedStack,
    cross_entropy,
)
from theodolite.studies.macdonald2023skip.shared.plain_descent import (
    Descended,
    Followed,
    descend,
    follow,
)
from theodolite.studies.macdonald2023skip.shared.settled_ends import (
    least_curvature,
    settle,
)
from theodolite.studies.macdonald2023skip.shared.signed_rows import named

if TYPE_CHECKING:
    from torch import Tensor

# Readings while steps grow.
_STAGES = 5


def generic(config: Config) -> list[Row]:
    """Descend from all starts at all multiples at once, and let the ends settle."""
    import torch

    runs = [
        (trial, start, multiple, copy)
        for trial in config.seeds
        for start in FAR_STARTS
        for multiple in config.multiples
        for copy in range(copies_of(config, start))
    ]
    betas = {
        t: smoothness(config, inputs(config, t), (config.samples,) * 2, "cross_entropy")
        for t in config.seeds
    }
    drawn = [two_layer_start(config, t, s, c) for t, s, _, c in runs]
    weights = [torch.tensor(np.stack(parts)) for parts in zip(*drawn, strict=True)]
    rates = torch.tensor([m / betas[t] for t, _, m, _ in runs], dtype=torch.float64)
    data = torch.tensor(np.stack([inputs(config, t).T for t, *_ in runs]))
    stack = NormalisedStack(
        inputs=data, branch_norm=BRANCH_NORM, epsilon=config.epsilon
    )
    classes = torch.arange(config.samples)

    def cost(outputs: "Tensor") -> "Tensor":
        return cross_entropy(outputs, classes)

    done = descend(lambda w: cost(stack.outputs(w)), weights, rates, config.near_marks)
    carried = _carried(config, lambda w: cost(stack.outputs(w)), done, rates)
    ended = settle(stack, cost, carried[-1].weights, config.settled)
    limits = ended.losses.numpy()
    of_trial = np.array([trial for trial, *_ in runs])
    best = {t: limits[of_trial == t].min() for t in config.seeds}
    rows: list[Row] = []
    for place, (trial, start, multiple, copy) in enumerate(runs):
        labels = {
            "trial": trial, "start": start, "multiple": multiple, "copy": copy,
            "layers": 2,
        }  # fmt: skip
        above = limits[place] - best[trial]
        found = {"limit": limits[place], "limit_above": above}
        found |= {"reached": above < REACHED, "lost": above >= REACHED}
        rows += named(found, 1e-6, **labels)
        rows += named({"rise": done.rise[place]}, 0.0, **labels)
        if start == "unit" and multiple == config.multiples[-1]:
            for mark, losses in zip(config.near_marks, done.losses, strict=True):
                excess = {"excess": float(losses[place]) - best[trial]}
                rows += named(excess, 1e-6, step=mark, **labels)
            time = config.steps * multiple
            for stage, one in enumerate(carried):
                time += float(one.time[place]) * betas[trial]
                value = float(one.losses[place]) - best[trial]
                found = {"carried_excess": value, "carried_time": time}
                rows += named(found, 1e-6, stage=stage, **labels)
    for trial, value in best.items():
        rows += named({"best": value}, 1e-6, trial=trial, layers=2)
        one = layer_of(config, trial).infimum()
        rows += named({"below_one_layer": one.value - value}, 1e-6, trial=trial)
        lost = [
            place
            for place, (t, start, multiple, _) in enumerate(runs)
            if (t, start, multiple) == (trial, "unit", 1.0)
            and limits[place] - value >= REACHED
        ]
        for place in lost[:1]:
            alone = replace(stack, inputs=data[place : place + 1])
            end = [part[place : place + 1] for part in ended.angles]
            bent = least_curvature(alone, cost, end)
            rows += named({"curvature_of_lost": bent}, 1e-9, trial=trial)
    return rows


def _carried(
    config: Config, loss: Loss, done: Descended, rates: "Tensor"
) -> list[Followed]:
    """Go on by steps that grow, in stages."""
    found: list[Followed] = []
    here, steps = done.weights, rates
    for _ in range(_STAGES):
        found.append(follow(loss, here, steps, config.carried // _STAGES))
        here, steps = found[-1].weights, found[-1].rates
    return found

"""Gradient descent of networks at step sizes that theory certifies."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from theodolite.core import Cell, Row, Rows, named_rows, stream
from theodolite.theory import descent_gain, kernel_floor, longest_path, worst_growth

from ..shared.normalised_stack import (
    Descended,
    Followed,
    Loss,
    NormalisedStack,
    cross_entropy,
    descend,
    follow,
    least_curvature,
    least_kernel,
    settle,
    square,
)
from .combine_stalls import stalls
from .config import (
    BRANCH_NORM,
    FAR_STARTS,
    NEARBY,
    REACHED,
    Config,
    copies_of,
    inputs,
    one_layer_start,
    shapes,
    two_layer_start,
)
from .predict import ONE_LAYER_STARTS, layer_of, smoothness

if TYPE_CHECKING:
    from torch import Tensor

# Radius around the start that the first layer provably does not leave.
_ROOM = 0.5
_TEACHER = 0.5


def bounded(config: Config) -> list[Row]:
    r"""Descend near networks that fit, and compare with $1 - \mu\alpha\lambda$.

    The longest possible path is shorter than the radius around the start for which
    the kernel's lower bound is computed, so that the hypothesis provably holds.
    """
    import torch

    runs = [(trial, m) for m in config.multiples for trial in config.seeds]
    drawn = []
    for trial, _ in runs:
        rng = stream(config.seed, "bounded", trial)
        ends = [_TEACHER * rng.normal(size=shape) for shape in shapes(config)]
        drawn.append((ends, [w + NEARBY * rng.normal(size=w.shape) for w in ends]))
    teacher, start = (
        [torch.tensor(np.stack(parts)) for parts in zip(*one, strict=True)]
        for one in zip(*drawn, strict=True)
    )
    data = torch.tensor(np.stack([inputs(config, trial).T for trial, _ in runs]))
    stack = NormalisedStack(
        inputs=data, branch_norm=BRANCH_NORM, epsilon=config.epsilon
    )
    targets = stack.outputs(teacher)
    betas = [
        smoothness(
            config, inputs(config, trial), (config.samples,) * 2, "square",
            target_norm=float(one.norm())
        )
        for (trial, _), one in zip(runs, targets, strict=True)
    ]  # fmt: skip
    rates = [m / beta for (_, m), beta in zip(runs, betas, strict=True)]
    done = descend(
        lambda w: square(stack.outputs(w), targets),
        start,
        torch.tensor(rates, dtype=torch.float64),
        config.near_marks,
        lambda w: torch.stack(
            [least_kernel(stack, w), (w[0] - start[0]).abs().amax(dim=(1, 2))]
        ),
    )
    losses = torch.stack(done.losses).numpy()
    noted = torch.stack(done.noted).numpy()
    rows: list[Row] = []
    for place, (trial, multiple) in enumerate(runs):
        labels = {"trial": trial, "multiple": multiple, "start": "near", "layers": 2}
        ended = {
            "fitted": losses[-1, place] / losses[0, place],
            "moved": noted[:, 1, place].max(),
        }
        rows += named_rows(ended, 1e-9, **labels)
        rows += named_rows({"rise": done.rise[place]}, 1e-24, **labels)
        for mark, loss in zip(config.near_marks, losses[:, place], strict=True):
            rows += named_rows({"excess": loss}, 1e-24, step=mark, **labels)
        if multiple == 1:
            away = float(start[0][place].abs().max())
            path = losses[:, place], float(noted[:, 0, place].min())
            rows += named_rows(
                _bounds(config, trial, betas[place], away, *path), 1e-9, **labels
            )
    return rows


def _bounds(
    config: Config,
    trial: int,
    beta: float,
    away: float,
    losses: np.ndarray,
    kernel: float,
) -> dict[str, float]:
    """Return measured and guaranteed rates of the loss at the certified step."""
    regular = 4 / config.samples  # of the mean over samples of squared distances
    speed = regular * descent_gain(1 / beta, beta)
    floor = kernel_floor(
        inputs(config, trial), away + _ROOM, config.epsilon, [BRANCH_NORM**2]
    )
    every = np.diff(config.near_marks)
    worst = float(((losses[1:] / losses[:-1]) ** (1 / every)).max())
    return {
        "fall": (1 - worst) / speed,  # in units of the kernel's eigenvalue
        "fall_over_kernel": (1 - worst) / (speed * kernel),
        "kernel_over_floor": kernel / floor,
        "path_over_room": longest_path(float(losses[0]), regular * floor) / _ROOM,
    }


# Readings while steps grow.
_STAGES = 5


def generic(config: Config) -> list[Row]:
    """Descend from all starts at all multiples at once, and follow each to its end."""
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
        numbers = {"limit": limits[place], "limit_above": above}
        numbers |= {"reached": above < REACHED, "lost": above >= REACHED}
        rows += named_rows(numbers, 1e-6, **labels)
        rows += named_rows({"rise": done.rise[place]}, 0.0, **labels)
        if start == "unit" and multiple == config.multiples[-1]:
            for mark, losses in zip(config.near_marks, done.losses, strict=True):
                excess = {"excess": float(losses[place]) - best[trial]}
                rows += named_rows(excess, 1e-6, step=mark, **labels)
            time = config.steps * multiple
            for stage, one in enumerate(carried):
                time += float(one.time[place]) * betas[trial]
                value = float(one.losses[place]) - best[trial]
                numbers = {"carried_excess": value, "carried_time": time}
                rows += named_rows(numbers, 1e-6, stage=stage, **labels)
    for trial, value in best.items():
        rows += named_rows({"best": value}, 1e-6, trial=trial, layers=2)
        one = layer_of(config, trial).infimum()
        rows += named_rows({"below_one_layer": one.value - value}, 1e-6, trial=trial)
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
            rows += named_rows({"curvature_of_lost": bent}, 1e-9, trial=trial)
    return rows


def _carried(
    config: Config, loss: Loss, done: Descended, rates: "Tensor"
) -> list[Followed]:
    """Continue descent with growing steps, in stages."""
    stages: list[Followed] = []
    here, steps = done.weights, rates
    for _ in range(_STAGES):
        stages.append(follow(loss, here, steps, config.carried // _STAGES))
        here, steps = stages[-1].weights, stages[-1].rates
    return stages


EPS = 1e-14


def one_layer(config: Config) -> list[Row]:
    """Descend from every start at every multiple, all at once."""
    import torch

    runs = [
        (trial, start, multiple)
        for trial in config.seeds
        for start in ONE_LAYER_STARTS
        for multiple in config.multiples
    ]
    layers = {trial: layer_of(config, trial) for trial in config.seeds}
    least = {trial: layer.infimum() for trial, layer in layers.items()}
    weights = np.stack(
        [one_layer_start(config, t, s, least[t].weights) for t, s, _ in runs]
    )
    rates = np.array([m / layers[t].smoothness for t, _, m in runs])
    data = torch.tensor(np.stack([inputs(config, t).T for t, _, _ in runs]))
    stack = NormalisedStack(inputs=data, epsilon=config.epsilon)
    classes = torch.arange(config.samples)
    done = descend(
        lambda w: cross_entropy(stack.outputs(w), classes),
        [torch.tensor(weights)],
        torch.tensor(rates),
        config.marks,
        lambda w: w[0].abs().amax(dim=(1, 2)),
    )
    rows: list[Row] = []
    for place, (trial, start, multiple) in enumerate(runs):
        labels = {"trial": trial, "start": start, "multiple": multiple, "layers": 1}
        infimum = least[trial]
        error = infimum.error + EPS
        rows += named_rows({"rise": done.rise[place]}, 0.0, **labels)
        for mark, losses in zip(config.marks, done.losses, strict=True):
            excess = {"excess": float(losses[place]) - infimum.value}
            rows += named_rows(excess, error, step=mark, **labels)
        if multiple == 1 and start in ("tiny", "unit"):
            rows += _growth(config, done, place, weights[place], labels)
        if multiple == 1:
            law = layers[trial].rate_constant(float(rates[place])) / config.long**0.5
            last = float(done.losses[-1][place]) - infimum.value
            rows += named_rows({"over_law": last / law}, 1e-6, **labels)
    return rows


def _growth(
    config: Config, done: Descended, place: int, start: np.ndarray, labels: dict
) -> list[Row]:
    r"""Return the largest weight divided by the worst growth from its start.

    Entries of $\nabla G$ are at most the mean size of a feature. A weight that starts
    beyond 1 is where one from 1 comes to later.
    """
    x = inputs(config, labels["trial"])
    rate = 1 / layer_of(config, labels["trial"]).smoothness
    push = rate * float(np.abs(x).sum(axis=0).max()) / len(x)
    away = float(np.abs(start).max())
    later = int(max(away, 1.0) ** 4 / (4 * push * config.epsilon)) + 1
    worst = worst_growth(config.long + later, rate, push / rate, config.epsilon)
    rows: list[Row] = []
    for mark, size in zip(config.marks, done.noted, strict=True):
        bound = worst[mark + int(np.searchsorted(worst, away))]
        numbers = {"weight_over_growth": float(size[place]) / bound}
        rows += named_rows(numbers, EPS, step=mark, **labels)
    return rows


PARTS = {
    "one_layer": one_layer,
    "stalls": stalls,
    "bounded": bounded,
    "generic": generic,
}


def combine(config: Config, cell: Cell) -> Rows:
    """Return one group of descents."""
    part = PARTS.get(cell["part"])
    return Rows([] if part is None else part(config))

"""Square costs that can be fitted, from where the proof keeps weights in a ball."""

import numpy as np

from theodolite.core import Row, stream
from theodolite.studies.macdonald2023skip.global_convergence.config import (
    BRANCH_NORM,
    NEARBY,
    Config,
    inputs,
    shapes,
)
from theodolite.studies.macdonald2023skip.global_convergence.predict_steps import (
    smoothness,
)
from theodolite.studies.macdonald2023skip.shared.normalised_stack import (
    NormalisedStack,
    least_kernel,
    square,
)
from theodolite.studies.macdonald2023skip.shared.plain_descent import descend
from theodolite.studies.macdonald2023skip.shared.signed_rows import named
from theodolite.theory import descent_gain, kernel_floor

# Room around the start that the first layer is shown not to leave.
_ROOM = 0.5
_TEACHER = 0.5


def bounded(config: Config) -> list[Row]:
    r"""Descend near networks that fit, and compare with $1 - \mu\alpha\lambda$.

    While first-layer weights stay within $R$ of the start, $\|\nabla\ell\|^2 \ge
    m\,\ell$ with $m = \mu\lambda_R$, so that a step $\eta \le 1/\beta$ has
    $\sqrt{\ell_t} - \sqrt{\ell_{t+1}} \ge \frac14\sqrt m\,\|\theta_{t+1} -
    \theta_t\|$: the whole path is no longer than $4\sqrt{\ell_0/m}$, and if that is
    below $R$ the weights never leave.
    """
    import torch

    drawn = [_drawn(config, trial) for trial in config.seeds]
    teacher, start = (
        [torch.tensor(np.stack(parts)) for parts in zip(*one, strict=True)]
        for one in zip(*drawn, strict=True)
    )
    data = torch.tensor(np.stack([inputs(config, t).T for t in config.seeds]))
    stack = NormalisedStack(
        inputs=data, branch_norm=BRANCH_NORM, epsilon=config.epsilon
    )
    targets = stack.outputs(teacher)
    rates = [
        1 / smoothness(
            config, inputs(config, trial), (config.samples,) * 2, "square",
            target_norm=float(one.norm()),
        )
        for trial, one in zip(config.seeds, targets, strict=True)
    ]  # fmt: skip
    done = descend(
        lambda w: square(stack.outputs(w), targets),
        start,
        torch.tensor(rates),
        config.near_marks,
        lambda w: torch.stack(
            [least_kernel(stack, w), (w[0] - start[0]).abs().amax(dim=(1, 2))]
        ),
    )
    losses, noted = torch.stack(done.losses), torch.stack(done.noted)
    rows: list[Row] = []
    for place, trial in enumerate(config.seeds):
        path = losses[:, place].numpy(), noted[:, 0, place], noted[:, 1, place]
        away = float(start[0][place].abs().max())
        rows += _rows(config, trial, rates[place], away, *path)
        labels = {"trial": trial, "multiple": 1.0, "layers": 2}
        rows += named({"rise": done.rise[place]}, 1e-18, **labels)
    return rows


def _drawn(config: Config, trial: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = stream(config.seed, "bounded", trial)
    teacher = [_TEACHER * rng.normal(size=shape) for shape in shapes(config)]
    return teacher, [w + NEARBY * rng.normal(size=w.shape) for w in teacher]


def _rows(
    config: Config,
    trial: int,
    rate: float,
    away: float,
    losses: np.ndarray,
    kernel: object,
    moved: object,
) -> list[Row]:
    regular = 4 / config.samples  # of the mean over samples of squared distances
    gain = descent_gain(rate, 1 / rate)
    x = inputs(config, trial)
    floor = kernel_floor(x, away + _ROOM, config.epsilon, [BRANCH_NORM**2])
    every = np.diff(config.near_marks)
    worst = float(((losses[1:] / losses[:-1]) ** (1 / every)).max())
    found = {
        "contraction": worst,
        "contraction_floor": 1 - regular * gain * floor,
        "contraction_kernel": 1 - regular * gain * float(min(kernel)),  # pyright: ignore
        "kernel_over_floor": float(min(kernel)) / floor,  # pyright: ignore
        "path_over_room": 4 * np.sqrt(losses[0] / (regular * floor)) / _ROOM,
        "moved": float(max(moved)),  # pyright: ignore
        "fitted": losses[-1] / losses[0],
    }
    return named(found, 1e-9, trial=trial, start="near")

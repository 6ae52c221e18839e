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
from theodolite.theory import descent_gain, kernel_floor, longest_path

# Room around the start that the first layer is shown not to leave.
_ROOM = 0.5
_TEACHER = 0.5


def bounded(config: Config) -> list[Row]:
    r"""Descend near networks that fit, and compare with $1 - \mu\alpha\lambda$.

    The longest path there can be is shorter than the room around the start for which
    the kernel's floor is computed, so that the hypothesis holds by proof.
    """
    import torch

    runs = [(trial, m) for m in config.multiples for trial in config.seeds]
    drawn = [_drawn(config, trial) for trial, _ in runs]
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
            target_norm=float(one.norm()),
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
        rows += named(ended, 1e-9, **labels)
        rows += named({"rise": done.rise[place]}, 1e-24, **labels)
        for mark, loss in zip(config.near_marks, losses[:, place], strict=True):
            rows += named({"excess": loss}, 1e-24, step=mark, **labels)
        if multiple == 1:
            away = float(start[0][place].abs().max())
            path = losses[:, place], float(noted[:, 0, place].min())
            rows += named(
                _bounds(config, trial, betas[place], away, *path), 1e-9, **labels
            )
    return rows


def _drawn(config: Config, trial: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = stream(config.seed, "bounded", trial)
    teacher = [_TEACHER * rng.normal(size=shape) for shape in shapes(config)]
    return teacher, [w + NEARBY * rng.normal(size=w.shape) for w in teacher]


def _bounds(
    config: Config,
    trial: int,
    beta: float,
    away: float,
    losses: np.ndarray,
    kernel: float,
) -> dict[str, float]:
    """Return how fast losses fall at the certified step, beside how fast they must."""
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

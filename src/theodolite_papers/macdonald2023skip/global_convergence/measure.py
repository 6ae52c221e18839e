"""Measurements by autodiff that need no certified step and no theory."""

import numpy as np

from theodolite.core import Cell, Row, Rows, named_rows, stream

from ..shared.normalised_stack import NormalisedStack, descend, least_kernel
from .config import (
    BRANCH_NORM,
    FORCE,
    GROWTH_RATES,
    KERNEL_SCALES,
    LINE,
    LONG_BRANCH,
    QUADRATICS,
    QUARTIC_RATE,
    QUARTIC_TARGET,
    RIVALS,
    Config,
    inputs,
    kernel_weights,
    shapes,
)

EPS = 1e-12
KERNEL_EPS = 1e-15


def kernels(config: Config) -> list[Row]:
    """Return kernel eigenvalues at random weights, and where those of rivals vanish."""
    import torch

    data = np.stack([inputs(config, trial).T for trial in config.seeds])
    stack = NormalisedStack(
        inputs=torch.tensor(data), branch_norm=BRANCH_NORM, epsilon=config.epsilon
    )
    rows: list[Row] = []
    for scale in KERNEL_SCALES:
        drawn = [kernel_weights(config, trial, scale) for trial in config.seeds]
        weights = [torch.tensor(np.stack(parts)) for parts in zip(*drawn, strict=True)]
        rows += _rows(config, least_kernel(stack, weights), scale=scale)
    for rival in RIVALS:
        weights = [torch.tensor(w) for w in _where_lost(config, rival)]
        for kind, one in (("theorem", stack), ("rival", _rival(config, rival, data))):
            least = least_kernel(one, weights)
            rows += _rows(config, least, rival=rival, network=kind)
    return rows


def _rival(config: Config, rival: str, data: np.ndarray) -> NormalisedStack:
    import torch

    if rival == "dependent data":
        data = data.copy()
        data[:, :, 1] = 2 * data[:, :, 0]
    return NormalisedStack(
        inputs=torch.tensor(data),
        branch_norm=LONG_BRANCH if rival == "long branch" else BRANCH_NORM,
        epsilon=config.epsilon,
        skip=rival != "no skip",
    )


def _where_lost(config: Config, rival: str) -> list[np.ndarray]:
    """Return weights at which the rival's kernel is singular, one network per set.

    Without skips, or with dependent data, these are zero branches. A branch that may be
    longer than its skip cancels the skip in one direction, where the output is zero.
    """
    first, inner, outer = (np.zeros((config.n_seeds, *s)) for s in shapes(config))
    if rival == "long branch":
        # All rows lie along one direction and have the length that makes both
        # matrices of norm 1, so that the branch is minus that direction's projection.
        length = 1 / LONG_BRANCH
        weight = length * np.sqrt(config.epsilon / (1 - length**2))
        inner += weight / np.sqrt(config.samples)
        outer -= weight / np.sqrt(config.samples)
    return [first, inner, outer]


def _rows(config: Config, kernels: object, **labels: object) -> list[Row]:
    rows: list[Row] = []
    for trial, value in zip(config.seeds, kernels, strict=True):  # pyright: ignore
        rows += named_rows({"kernel": value}, KERNEL_EPS, trial=trial, **labels)
    return rows


_SHORT = 12


def arithmetic(config: Config) -> list[Row]:
    """Return measured values of the quantities in the steps of the proof."""
    rows: list[Row] = []
    # The worst factor that a step leaves of a quadratic loss.
    for case, (spectrum, rate) in enumerate(QUADRATICS):
        losses = _losses(spectrum, rate, _SHORT)
        worst = float((losses[1:] / losses[:-1]).max())
        rows += named_rows({"factor": worst}, EPS, case=case)
    # Share of a parabola's loss that is left after each step.
    curvature, rate = LINE
    losses = _losses((curvature,), rate, 5)[:, 0]
    for step, left in enumerate(losses / losses[0]):
        rows += named_rows({"left": left}, EPS, step=step)
    return [*rows, *_growth(config), *_turned(config)]


def _losses(spectrum: tuple[float, ...], rate: float, steps: int) -> np.ndarray:
    """Return losses of descent from each axis of a quadratic, one column per axis."""
    import torch

    curvatures = torch.tensor(spectrum, dtype=torch.float64)
    start = torch.eye(len(spectrum), dtype=torch.float64)[:, None]
    rates = torch.full((len(spectrum),), rate, dtype=torch.float64)
    done = descend(
        lambda w: 0.5 * (curvatures * w[0].square()).sum(dim=(1, 2)),
        [start],
        rates,
        range(steps + 1),
    )
    return torch.stack(done.losses).numpy()


def _growth(config: Config) -> list[Row]:
    """Return a weight that the worst force pushes outwards, step by step."""
    import torch

    start = torch.ones(len(GROWTH_RATES), 1, 1, dtype=torch.float64)
    done = descend(
        lambda w: 0.5 * FORCE * w[0].pow(-2).sum(dim=(1, 2)),
        [start],
        torch.tensor(GROWTH_RATES, dtype=torch.float64),
        config.stall_marks,
        lambda w: w[0][:, 0, 0].clone(),
    )
    rows: list[Row] = []
    for mark, weights in zip(config.stall_marks, done.noted, strict=True):
        for rate, value in zip(GROWTH_RATES, weights.tolist(), strict=True):
            rows += named_rows({"growth": value}, EPS, step=mark, rate=rate)
    return rows


def _turned(config: Config) -> list[Row]:
    """Return how much the order of normalising and rotating weights matters."""
    rows: list[Row] = []
    size = config.samples * config.features
    for trial in config.seeds:
        rng = stream(config.seed, "turned", trial)
        turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
        w = rng.normal(size=size)
        one, other = turn @ _entries(w, config), _entries(turn @ w, config)
        gap = np.linalg.norm(one - other) / np.linalg.norm(one)
        rows += named_rows({"turning_gap": gap}, EPS, trial=trial)
    return rows


def _entries(w: np.ndarray, config: Config) -> np.ndarray:
    return w / np.sqrt(config.epsilon + w**2)


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
            numbers = {"quartic": losses[place], "quartic_weight": sizes[place]}
            rows += named_rows(numbers, 1e-18, step=mark, trial=trial)
    return rows


PARTS = {"arithmetic": arithmetic, "kernels": kernels, "bounded": quartic}


def measure(config: Config, cell: Cell) -> Rows:
    """Measure one group of numbers; predictions use descents at certified steps too."""
    part = PARTS.get(cell["part"])
    return Rows([] if part is None else part(config))

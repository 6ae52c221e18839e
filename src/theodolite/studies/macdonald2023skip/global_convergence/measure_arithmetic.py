"""Descent on quadratic losses and on the worst force, and weights that are turned."""

import numpy as np

from theodolite.core import Row, stream
from theodolite.studies.macdonald2023skip.global_convergence.config import (
    FORCE,
    GROWTH_RATES,
    LINE,
    QUADRATICS,
    Config,
)
from theodolite.studies.macdonald2023skip.shared.plain_descent import descend
from theodolite.studies.macdonald2023skip.shared.signed_rows import named

EPS = 1e-12
_SHORT = 12


def arithmetic(config: Config) -> list[Row]:
    """Return what the steps of the proof say, measured."""
    return [*_quadratics(), *_line(), *_growth(config), *_turned(config)]


def _quadratics() -> list[Row]:
    """Return the worst factor that a step leaves of a quadratic loss."""
    rows: list[Row] = []
    for case, (spectrum, rate) in enumerate(QUADRATICS):
        losses = _losses(spectrum, rate, _SHORT)
        worst = float((losses[1:] / losses[:-1]).max())
        rows += named({"factor": worst}, EPS, case=case)
    return rows


def _line() -> list[Row]:
    """Return what is left of a parabola after each step."""
    curvature, rate = LINE
    losses = _losses((curvature,), rate, 5)[:, 0]
    rows: list[Row] = []
    for step, left in enumerate(losses / losses[0]):
        rows += named({"left": left}, EPS, step=step)
    return rows


def _losses(spectrum: tuple[float, ...], rate: float, steps: int) -> np.ndarray:
    """Descend from each axis of a quadratic loss; a column an axis."""
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
    for mark, found in zip(config.stall_marks, done.noted, strict=True):
        for rate, value in zip(GROWTH_RATES, found.tolist(), strict=True):
            rows += named({"growth": value}, EPS, step=mark, rate=rate)
    return rows


def _turned(config: Config) -> list[Row]:
    """Return how far normalising and turning weights differ by their order."""
    rows: list[Row] = []
    size = config.samples * config.features
    for trial in config.seeds:
        rng = stream(config.seed, "turned", trial)
        turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
        w = rng.normal(size=size)
        one, other = turn @ _entries(w, config), _entries(turn @ w, config)
        gap = np.linalg.norm(one - other) / np.linalg.norm(one)
        rows += named({"turning_gap": gap}, EPS, trial=trial)
    return rows


def _entries(w: np.ndarray, config: Config) -> np.ndarray:
    return w / np.sqrt(config.epsilon + w**2)

"""Autodiff and gradient descent of linear classifiers; no theory."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import Row, Rows, named_rows

from ..shared.descent import descend_linear, forward, objectives
from ..shared.drawn_networks import draw
from ..shared.rows import limit
from .config import (
    AT_NORMS,
    SETTINGS,
    STARTS,
    THREE_DECAYS,
    THREE_START,
    Config,
    data,
    directions,
    three_points,
)

if TYPE_CHECKING:
    from torch import Tensor

_MOST_STEPS, _AT_REST = 10_000, 1e-7


def ends(config: Config) -> list[Row]:
    """Descend from every start, with decay and without."""
    rows: list[Row] = []
    for shape, loss, decay in SETTINGS:
        weights = final_weights(config, shape, loss, decay)
        labels = {"shape": shape, "loss": loss, "decay": decay}
        for trial, of_starts in zip(config.seeds, weights, strict=True):
            apart = of_starts[:, None] - of_starts[None]
            size = float(np.linalg.norm(of_starts, axis=1).max())
            spread = float(np.linalg.norm(apart, axis=2).max()) / size
            rows += named_rows({"spread": spread}, 1e-9, trial=trial, **labels)
    return [*rows, *_norms_without_decay(config), *_from_zero(config)]


@lru_cache(maxsize=8)
def final_weights(config: Config, shape: str, loss: str, decay: float) -> np.ndarray:
    """Return the last weights by trial and start."""
    rate = config.rates[0]
    return _descend(config, shape, loss, decay, rate, round(config.end / rate))


def _descend(
    config: Config, shape: str, loss: str, decay: float, rate: float, steps: int
) -> np.ndarray:
    import torch

    drawn = [data(config, shape, trial) for trial in config.seeds]
    x, y = (
        torch.tensor(np.repeat([d[k] for d in drawn], len(STARTS), axis=0))
        for k in (0, 1)
    )
    scale = torch.tensor(STARTS * config.n_seeds, dtype=torch.float64)
    units = [directions(config, shape, trial) for trial in config.seeds]
    v = torch.tensor(np.concatenate(units))
    rho, v = descend_linear(loss, scale, v, (x, y), decay, rate, steps)
    return (rho[:, None] * v).numpy().reshape(config.n_seeds, len(STARTS), -1)


def _norms_without_decay(config: Config) -> list[Row]:
    """Return norms at the horizon as steps vanish, for underdetermined data."""
    case: tuple[str, str, float] = ("wide", "square", 0.0)
    paths = [
        np.linalg.norm(
            _descend(config, *case, rate, round(config.horizon / rate)), axis=2
        )
        for rate in config.rates
    ]
    rows: list[Row] = []
    for i, trial in enumerate(config.seeds):
        for start in range(len(STARTS)):
            value, error = limit([float(norms[i, start]) for norms in paths])
            labels = {"shape": "wide", "loss": "square", "decay": 0.0}
            numbers = {"end_norm": value}
            rows += named_rows(
                numbers, error + 1e-9, trial=trial, start=start, **labels
            )
    return rows


def _from_zero(config: Config) -> list[Row]:
    """Descend on plain weights from close to zero, without decay."""
    import torch

    drawn = [data(config, "wide", trial) for trial in config.seeds]
    x, y = (torch.tensor(np.array([d[k] for d in drawn])) for k in (0, 1))
    starts = [directions(config, "wide", trial)[0] for trial in config.seeds]
    w = torch.tensor(1e-6 * np.array(starts), requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.2)
    for _ in range(_MOST_STEPS):
        optimizer.zero_grad()
        errors = (x @ w[..., None])[..., 0] - y
        (errors**2).sum().backward()
        if w.grad is not None and float(w.grad.norm()) < _AT_REST:
            break
        optimizer.step()
    rows: list[Row] = []
    w = w.detach()
    sizes = w.norm(dim=1), ((x @ w[..., None])[..., 0] - y).norm(dim=1)
    for trial, norm, left in zip(config.seeds, *sizes, strict=True):
        # The start is not zero, and what it leaves outside of the data's span stays.
        rows += named_rows({"plain_norm": norm, "plain_loss": left}, 1e-6, trial=trial)
    return rows


# Descent has come to rest by then to this much.
REST = 1e-9


def points(config: Config) -> list[Row]:
    """Descend on the square loss with decay and on the exponential loss without."""
    import torch

    x, y = (torch.tensor(a) for a in three_points())
    scale, angle = THREE_START
    rho = torch.tensor([scale], dtype=torch.float64)
    turn = torch.tensor([angle], dtype=torch.float64)
    v = torch.stack([turn.cos(), turn.sin()], dim=1)
    rate = 0.1
    steps = round(config.end / rate)
    rows: list[Row] = []
    for decay in THREE_DECAYS:
        end = descend_linear("square", rho, v, (x, y), decay, rate, steps)
        rows += _square(end, x, y, decay)
    _, end_v = descend_linear("exponential", rho, v, (x, y), 0.0, rate, steps)
    for n, margin in enumerate(x @ end_v[0]):
        rows += named_rows({"margin": margin}, 1e-4, sample=n)
    return [*rows, *_equilibria(x, y)]


def _square(end: tuple[Any, Any], x: Any, y: Any, decay: float) -> list[Row]:
    """Return residuals, their shares of Eq 29, and Eqs 36 and 37 at the end."""
    rho, v = float(end[0][0]), end[1][0]
    f = x @ v
    error = rho * f - y
    alpha = error / (error @ f)
    rows = named_rows({"sum_gap": (alpha @ x - v).norm()}, REST, decay=decay)
    for n in range(len(y)):
        each = (error[n] * (x[n] - v * f[n])).norm()
        numbers = {"residual": -error[n], "alpha": alpha[n], "each_gap": each}
        rows += named_rows(numbers, REST * 10, sample=n, decay=decay)
    return rows


def _equilibria(x: Any, y: Any) -> list[Row]:
    """Return how fast the exponential flow leaves (1, 0), at several norms."""
    import torch

    rows: list[Row] = []
    for norm in AT_NORMS:
        rho = torch.tensor([norm], dtype=torch.float64)
        v = torch.tensor([[1.0, 0.0]], dtype=torch.float64, requires_grad=True)
        value = objectives("exponential", rho, v, (x, y), 0.0).sum()
        (g,) = torch.autograd.grad(value, v)
        along = (g - (g * v.detach()).sum() * v.detach()).norm()
        rows += named_rows({"leaving": along}, 1e-14, norm=norm)
    return rows


EPS, DECAY = 1e-12, 0.1


def speeds(config: Config) -> list[Row]:
    """Differentiate objectives in the norm and along the sphere."""
    rows: list[Row] = []
    for trial in config.seeds:
        for loss in ("square", "exponential"):
            rows += _of_loss(config, trial, loss)
        rows += _map(config, trial)
    return rows


def _of_loss(config: Config, trial: int, loss: str) -> list[Row]:
    import torch

    x, y = (torch.tensor(a) for a in data(config, "wide", trial))
    rho = torch.tensor(STARTS, dtype=torch.float64, requires_grad=True)
    v = torch.tensor(directions(config, "wide", trial)).requires_grad_()
    value = objectives(loss, rho, v, (x, y), DECAY).sum()
    by_rho, by_v = torch.autograd.grad(value, [rho, v])
    unit = v.detach()
    tangent = by_v - (unit * by_v).sum(1, keepdim=True) * unit
    rows: list[Row] = []
    for start in range(len(STARTS)):
        labels = {"trial": trial, "loss": loss, "start": start}
        rows += named_rows({"norm_speed": -by_rho[start]}, EPS, **labels)
        for k, moved in enumerate(-tangent[start]):
            rows += named_rows({"direction_speed": moved}, EPS, feature=k, **labels)
        printed = _printed(loss, float(rho.detach()[start]), unit[start], x, y)
        slope = by_rho[start] * printed[0] + by_v[start] @ printed[1]
        right = -(by_rho[start] ** 2) - tangent[start] @ tangent[start]
        rates = {"printed_loss_rate": slope, "loss_rate": right}
        rows += named_rows(rates, EPS * (1 + abs(float(slope))), **labels)
    return rows


def _printed(loss: str, rho: float, v: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the speeds of Eqs 32 and 33, their factor of proportion one."""
    out = x @ v
    error = rho * out - y if loss == "square" else (-rho * y * out).exp()
    scale = 2 / rho * (error * y * out).sum() - 2 * DECAY * rho
    return scale, error @ (x - out[:, None] * v)


def _map(config: Config, trial: int) -> list[Row]:
    """Differentiate one step of Eq 34 at both of its fixed points."""
    import torch

    rng = np.random.default_rng(trial)
    x, turn = (torch.tensor(rng.normal(size=5)) for _ in range(2))
    x = x / x.norm()
    turn = turn - (turn @ x) * x

    def step(v: Any) -> Any:
        moved = v + config.step * (x - v * (v @ x))
        return moved / moved.norm()

    rows: list[Row] = []
    for place, sign in (("target", 1.0), ("opposite", -1.0)):
        pair: Any = torch.autograd.functional.jvp(step, sign * x, turn)
        moved, turned = pair
        numbers = {
            "expansion": turned.norm() / turn.norm(),
            "fixed_gap": (moved - sign * x).norm(),
        }
        rows += named_rows(numbers, EPS, place=place, trial=trial)
    return rows


def deep(config: Config) -> list[Row]:
    """Differentiate the exponential loss of weight-normalised ReLU networks."""
    import torch

    rows: list[Row] = []
    for trial in config.seeds:
        drawn = draw(config.seed, trial, config.widths, 6)
        x, y = torch.tensor(drawn.inputs), torch.tensor(drawn.labels)
        count = len(drawn.weights)
        norms = torch.linspace(1.2, 1.6, count, dtype=torch.float64).requires_grad_()
        units = [torch.tensor(w).requires_grad_() for w in drawn.weights]
        weights = [r * v / v.norm() for r, v in zip(norms, units, strict=True)]
        loss = (-y * forward(weights, x)).exp().sum()
        by_norms, *by_units = torch.autograd.grad(loss, [norms, *units])
        for k, (g, probe) in enumerate(zip(by_units, drawn.probes, strict=True)):
            numbers = {
                "deep_norm_speed": -by_norms[k],
                "deep_velocity": -(g * torch.tensor(probe)).sum(),
            }
            rows += named_rows(numbers, EPS, trial=trial, layer=k)
    return rows


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
    rho, v, last = _descend_by_samples(rho, v, (x, y))
    rows: list[Row] = []
    for row in _rows(config, rho, v, (x, y), 0.0):
        rested = float(last[config.seeds.index(row["trial"])]) < RESTED
        # A run that did not reach its end has no result.
        rows.append(row if rested else {**row, "error": None})
    weights = torch.tensor(final_weights(config, "wide", "square", 0.1)[:, START])
    rho = weights.norm(dim=1)
    return rows + _rows(config, rho, weights / rho[:, None], (x, y), 0.1)


def _descend_by_samples(
    rho: "Tensor", v: "Tensor", sets: tuple["Tensor", "Tensor"]
) -> tuple["Tensor", "Tensor", "Tensor"]:
    """Descend sample by sample until the weights rest; return the last moves too.

    The order of samples is fixed, so that an epoch without a move means the end.
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


def _rates(sets: tuple["Tensor", "Tensor"]) -> "Tensor":
    import torch

    x, y = sets
    shortest = torch.linalg.lstsq(x, y[..., None], driver="gelsd").solution[..., 0]
    return STABLE / (1 + shortest.square().sum(1))


def _step(
    rho: "Tensor",
    v: "Tensor",
    sets: tuple["Tensor", "Tensor"],
    decay: float,
    rates: "Tensor",
    n: int,
) -> tuple["Tensor", "Tensor"]:
    """Take a step on one sample, with its share of the decay, and retract."""
    by_rho, by_v = _gradients(rho, v, sets, decay, n)
    rho = rho - rates * by_rho
    v = v - rates[:, None] * by_v
    return rho, v / v.norm(dim=1, keepdim=True)


def _gradients(
    rho: "Tensor", v: "Tensor", sets: tuple["Tensor", "Tensor"], decay: float, n: int
) -> tuple["Tensor", "Tensor"]:
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
    rho: "Tensor",
    v: "Tensor",
    sets: tuple["Tensor", "Tensor"],
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
        numbers = {"sample_residual": residual, "sample_step": step}
        rows += named_rows(numbers, 1e-9, trial=trial, decay=decay)
    return rows


PARTS = {
    "speeds": speeds,
    "ends": ends,
    "points": points,
    "samples": samples,
    "deep": deep,
}


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one group of numbers."""
    return Rows(PARTS[cell["part"]](config))

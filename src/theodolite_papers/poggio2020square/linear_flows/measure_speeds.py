"""Speeds by autodiff, what Eqs 32 and 33 would do, and the map of Eq 34."""

from typing import Any

import numpy as np

from theodolite.core import Row, named_rows

from ..shared.drawn_networks import draw
from ..shared.linear_descent import objectives
from ..shared.projected_descent import forward
from .config import STARTS, Config, data, directions

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
        found = {"printed_loss_rate": slope, "loss_rate": right}
        rows += named_rows(found, EPS * (1 + abs(float(slope))), **labels)
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
        told: Any = torch.autograd.functional.jvp(step, sign * x, turn)
        moved, turned = told
        found = {
            "expansion": turned.norm() / turn.norm(),
            "fixed_gap": (moved - sign * x).norm(),
        }
        rows += named_rows(found, EPS, place=place, trial=trial)
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
            found = {
                "deep_norm_speed": -by_norms[k],
                "deep_velocity": -(g * torch.tensor(probe)).sum(),
            }
            rows += named_rows(found, EPS, trial=trial, layer=k)
    return rows

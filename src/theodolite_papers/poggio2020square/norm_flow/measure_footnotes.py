"""Layers that are their own gradients, and outputs that are zero or one."""

from typing import TYPE_CHECKING

import numpy as np

from theodolite.core import Row, named_rows

from ..shared.projected_descent import forward
from .config import Config, ray_network, shares
from .measure_norms import at_rest

if TYPE_CHECKING:
    import torch

EPS = 1e-12


def footnotes(config: Config) -> list[Row]:
    """Differentiate networks of one ray, and let norms rest under held outputs."""
    rows: list[Row] = []
    for trial in config.seeds:
        rows += [*_ray(config, trial), *_shares(config, trial)]
    return rows


def _ray(config: Config, trial: int) -> list[Row]:
    """Return speeds of the layers and of the norm, at rest of the norm and away."""
    import torch

    drawn = ray_network(config, trial)
    weights = [torch.tensor(w).requires_grad_() for w in drawn.weights]
    x, y = torch.tensor(drawn.inputs), torch.tensor(drawn.labels)
    f = forward(weights, x)
    gaps = []
    for one in f:
        own = torch.autograd.grad(one, weights, retain_graph=True)
        gaps += [
            float((w * one - g).detach().norm())
            for w, g in zip(weights, own, strict=True)
        ]
    rows = named_rows({"ray_gap": max(gaps)}, EPS, trial=trial)
    rest = float(at_rest(f.detach().numpy(), drawn.labels, config.decay))
    for place, scale in (("rest", rest), ("below", rest / 2), ("above", 2 * rest)):
        found = _speeds(weights, (x, y), scale, config.decay)
        rows += named_rows(found, EPS, trial=trial, place=place)
    return rows


def _speeds(
    weights: list["torch.Tensor"],
    data: tuple["torch.Tensor", "torch.Tensor"],
    scale: float,
    decay: float,
) -> dict[str, float]:
    import torch

    rho = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
    errors = rho * forward(weights, data[0]) - data[1]
    loss = (errors**2).sum() + decay * rho**2
    by_rho, *by_weights = torch.autograd.grad(loss, [rho, *weights])
    fastest = max(
        float((g - (g * w).sum() * w).norm())
        for g, w in zip(by_weights, (w.detach() for w in weights), strict=True)
    )
    return {"ray_layer_speed": fastest, "ray_norm_speed": abs(float(by_rho))}


def _shares(config: Config, trial: int) -> list[Row]:
    """Return where a norm rests, and its products with outputs."""
    rows: list[Row] = []
    for spread, f in shares(config, trial).items():
        rest = float(at_rest(f, np.ones(len(f)), 0.0))
        found = {
            "shares_norm": rest,
            "times_least": rest * f.min(),
            "times_most": rest * f.max(),
        }
        rows += named_rows(found, EPS, trial=trial, spread=spread)
    return rows

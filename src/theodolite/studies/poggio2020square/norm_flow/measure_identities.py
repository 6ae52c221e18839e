"""What autodiff says of the norm and the layers of random ReLU networks."""

import math
from typing import TYPE_CHECKING

from theodolite.core import Row
from theodolite.studies.poggio2020square.norm_flow.config import SCALES, SIDES, Config
from theodolite.studies.poggio2020square.shared.drawn_networks import Drawn, draw
from theodolite.studies.poggio2020square.shared.projected_descent import forward
from theodolite.studies.poggio2020square.shared.rows import named

if TYPE_CHECKING:
    import torch

EPS = 1e-13


def identities(config: Config) -> list[Row]:
    """Differentiate every network in its norm, its unit layers and its layers."""
    rows: list[Row] = []
    for trial in config.seeds:
        drawn = draw(config.seed, trial, config.deep_widths, config.samples)
        scale = 1.5 + trial % 3
        rows += _normalised(drawn, scale, config.decay, trial)
        rows += _unnormalised(drawn, scale, trial)
        for rho in SCALES:
            for side in SIDES:
                rows += _off_the_sphere(drawn, rho, side, trial)
    return rows


def _tensors(
    drawn: Drawn,
) -> tuple[list["torch.Tensor"], "torch.Tensor", "torch.Tensor"]:
    import torch

    weights = [torch.tensor(w).requires_grad_() for w in drawn.weights]
    return weights, torch.tensor(drawn.inputs), torch.tensor(drawn.labels)


def _normalised(drawn: Drawn, scale: float, decay: float, trial: int) -> list[Row]:
    import torch

    weights, x, y = _tensors(drawn)
    rho = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
    f = forward(weights, x)
    loss = ((rho * f - y) ** 2).sum()
    by_rho, *by_weights = torch.autograd.grad(loss + decay * rho**2, [rho, *weights])
    found = {"norm_speed": -by_rho, "output": f.abs().max()}
    rows = named({k: v.detach() for k, v in found.items()}, EPS, trial=trial)
    for k, (w, g, p) in enumerate(zip(weights, by_weights, drawn.probes, strict=True)):
        v = w.detach()
        along = float((v * g).sum())
        nu = -along / 2
        moved = -(g - along * v)
        # Eq 23 has the sums of both terms apart, the second one twice.
        found = {
            "velocity": (moved * torch.tensor(p)).sum(),
            "multiplier": nu,
            "radial": (v * moved).sum(),
            "radial_eq_21": (v * (-g - 2 * decay * v)).sum(),
            "radial_eq_21_corrected": (v * (-g - 2 * nu * v)).sum(),
            "radial_eq_23": (v * (-g + 2 * along * v)).sum(),
        }
        rows += named(found, EPS, trial=trial, layer=k)
    return rows


def _unnormalised(drawn: Drawn, scale: float, trial: int) -> list[Row]:
    """Differentiate by layers of equal norm, whose product is the scale."""
    import torch

    units, x, y = _tensors(drawn)
    each = scale ** (1 / len(units))
    weights = [(each * v.detach()).requires_grad_() for v in units]
    g = forward(weights, x)
    mean = torch.autograd.grad(((g - y) ** 2).mean(), weights, retain_graph=True)
    rows: list[Row] = []
    for k, (w, gradient) in enumerate(zip(weights, mean, strict=True)):
        v, probe = w.detach(), torch.tensor(drawn.probes[k])
        each = [torch.autograd.grad(one, w, retain_graph=True)[0] for one in g]
        jacobian = [float((v * one).sum()) for one in each]
        gaps = [abs(a - float(b)) for a, b in zip(jacobian, g.detach(), strict=True)]
        probed = torch.stack([(probe * one).sum() for one in each])
        found = {
            # Eq 19 has the outputs and the labels apart.
            "plain_velocity": -(probe * gradient).sum(),
            "plain_by_outputs": -2 * (g.detach() * probed).mean(),
            "plain_by_labels": 2 * (y * probed).mean(),
            "lemma_gap": max(gaps) / float(g.detach().abs().max()),
            "square_rate": -2 * (v * gradient).sum(),
            "layer_norm_speed": -len(y) * (v * gradient).sum() / v.norm(),
        }
        rows += named(found, EPS, trial=trial, layer=k)
    return rows


def _off_the_sphere(drawn: Drawn, rho: float, side: float, trial: int) -> list[Row]:
    """Follow Eq 6 from a first layer that is off the sphere, as it is written."""
    import torch

    weights, x, y = _tensors(drawn)
    with torch.no_grad():
        weights[0] *= math.sqrt(side)
    f = forward(weights, x)
    loss = ((rho * f - y) ** 2).sum()
    gradient = torch.autograd.grad(loss, weights[0])[0]
    v, f = weights[0].detach(), f.detach()
    moved = -gradient + 2 * rho * float(((rho * f - y) * f).sum()) * v
    rate = 2 * float((v * moved).sum()) / (side - 1)
    size = EPS * (1 + rho**2) / abs(side - 1)
    return named({"sphere_rate": rate}, size, trial=trial, rho=rho, side=side)

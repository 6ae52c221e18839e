"""Second moments of sampled energies, gradients and Hessians."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from theodolite import networks
from theodolite.core import Rows, SpinGlassBlueprint, derive, named_rows, stream

from .config import MIXTURES, OFF, OVERLAP, Config

# Energies of many glasses, each at its own points: (draws, points, width) to
# (draws, points).
Energies = Callable[[Any], Any]


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Sample energies and return mean squares of them and of their derivatives."""
    import torch

    width, mixture = cell["width"], MIXTURES[cell["mixture"]]
    seeds = [derive(cell["trial"], "draw", i) for i in range(config.draws)]
    # Points of the unit sphere, each with two tangent directions.
    points = stream(cell["trial"], "points").standard_normal((config.points, width, 3))
    frames = torch.from_numpy(np.linalg.qr(points)[0].transpose(0, 2, 1))
    frames = frames.expand(config.draws, *frames.shape)
    sampled = _sampled(SpinGlassBlueprint(width=width, mixture=mixture), seeds)
    numbers = _moments(sampled, frames, width, max(mixture))
    numbers |= _pairs(sampled, frames, width)
    printed = _moments(_printed(width, mixture, seeds), frames, width, max(mixture))
    numbers |= {f"printed_{name}": value for name, value in printed.items()}
    # Averages have only rounding errors here; the spread over trials shows chance.
    return Rows(named_rows(numbers, 1e-12))


def _sampled(plan: SpinGlassBlueprint, seeds: list[int]) -> Energies:
    """Return the energies of many glasses at once."""
    import torch
    from torch.func import functional_call, vmap

    glasses = [networks.build(plan, seed=seed) for seed in seeds]
    names = [name for name, _ in glasses[0].named_parameters()]
    stacked = {
        name: torch.stack([glass.get_parameter(name) for glass in glasses])
        for name in names
    }

    def energies(points: Any) -> Any:
        return vmap(lambda held, rows: functional_call(glasses[0], held, (rows,)))(
            stacked, points
        )

    return energies


def _printed(width: int, mixture: Mapping[int, float], seeds: list[int]) -> Energies:
    """Return energies of Eq 26 as printed: the product lacks its first factor."""
    import torch

    tensors = {
        order: torch.from_numpy(
            np.stack(
                [
                    stream(s, "printed", order).standard_normal((width,) * order).sum(0)
                    for s in seeds
                ]
            )
        )
        for order in mixture
    }

    def energies(points: Any) -> Any:
        total = 0.0
        for order, tensor in tensors.items():
            left = tensor[:, None].expand(*points.shape[:2], *tensor.shape[1:])
            for _ in range(order - 1):
                left = torch.einsum("dp...i,dpi->dp...", left, points)
            scale = math.sqrt(mixture[order] / width ** (order - 1))
            total = total - scale * left
        return total

    return energies


def _moments(
    energies: Energies, frames: Any, width: int, order: int
) -> dict[str, float]:
    """Return mean squares of energy, tangential and radial slope, and curvature."""
    import torch

    radius = math.sqrt(width)
    # In coordinates of the frame: along the point, and along two tangents.
    steps = torch.zeros(frames.shape[:3], dtype=frames.dtype, requires_grad=True)
    moved = torch.einsum("dpf,dpfi->dpi", steps, frames)
    value = energies(radius * frames[:, :, 0] + moved)
    (slope,) = torch.autograd.grad(value.sum(), steps, create_graph=True)
    (second,) = torch.autograd.grad(slope[..., 1].sum(), steps)
    value, slope = value.detach(), slope.detach()
    radial, tangent, bend = radius * slope[..., 0], slope[..., 1:], second[..., 2]
    return {
        "centre": float(value.mean()) / radius,
        "variance": float((value**2).mean()) / width,
        "slope_square": float((tangent**2).mean()),
        "bend_square": float((bend**2).mean()) * width,
        "radial_square": float((radial**2).mean()) / width,
        "euler_gap": float((radial - order * value).abs().max() / radial.abs().max()),
    }


def _pairs(energies: Energies, frames: Any, width: int) -> dict[str, float]:
    """Return the covariance at an overlap, and the variance off the sphere."""
    radius = math.sqrt(width)
    first = radius * frames[:, :, 0]
    turned = OVERLAP * frames[:, :, 0] + math.sqrt(1 - OVERLAP**2) * frames[:, :, 1]
    product = energies(first) * energies(radius * turned)
    return {
        "covariance": float(product.mean()) / width,
        "variance_off": float((energies(OFF * first) ** 2).mean()) / width,
    }

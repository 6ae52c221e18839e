"""The effect of one step of the weights on scales and norm, by autodiff alone."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite import networks
from theodolite.core import LayerwiseBlueprint, Row, Rows, named_rows, stream

from .config import KINDS, Config, Instance, instance

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-14


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Differentiate the losses of a cell; degree 0 means networks."""
    m, p = cell["shallow"], cell["deep"]
    if not m:
        return Rows(row for trial in config.seeds for row in _network(config, trial))
    rows: list[Row] = []
    for kind in KINDS:
        for trial in config.seeds:
            numbers = _after_a_step(config, instance(config, kind, m, p, trial))
            ratio, _ = numbers["gradient_ratio"]
            rows += named_rows(numbers, kind=kind, trial=trial, ratio=ratio)
    return Rows(rows)


def _after_a_step(config: Config, drawn: Instance) -> dict[str, tuple[float, float]]:
    """Take one step of gradient descent on the weights, and differentiate again."""
    import torch

    w = torch.tensor(drawn.weights, requires_grad=True)
    scales = torch.tensor(drawn.scales, requires_grad=True)
    low, high = (torch.tensor(t) for t in (drawn.shallow, drawn.deep))
    m = low.ndim

    def loss(at: "Tensor", by: "Tensor") -> "Tensor":
        return by[:m].prod() * _form(low, at) + by.prod() * _form(high, at)

    value = loss(w, scales)
    g = torch.autograd.grad(value, w)[0]
    rate = torch.zeros((), dtype=torch.float64, requires_grad=True)
    size = w.detach().norm() / math.sqrt(len(w))
    radial = w.detach() / size

    def by_scales(mu: "Tensor") -> "Tensor":
        made = loss(w.detach() - mu * g, scales)
        return torch.autograd.grad(made, scales, create_graph=True)[0]

    def by_norm(mu: "Tensor") -> "Tensor":
        moved = w.detach() - mu * g
        ray = torch.ones((), dtype=torch.float64, requires_grad=True)
        made = torch.autograd.grad(loss(ray * moved, scales), ray, create_graph=True)
        return made[0] / (moved.norm() / math.sqrt(len(w)))

    numbers: dict[str, tuple[float, float]] = {}
    reach = EPS * (1 + float(g @ g) + abs(float(value.detach())))
    turned = by_scales(rate)
    forces = [
        torch.autograd.grad(turned[k], rate, retain_graph=True)[0] for k in (0, -1)
    ]
    step = torch.tensor(config.step, dtype=torch.float64)
    moved = by_scales(step).detach()
    for name, place, force in zip(
        ("unskipped", "skipped"), (0, -1), forces, strict=True
    ):
        here = float(drawn.scales[place])
        grown = abs(here - config.step * float(moved[place])) - abs(here)
        numbers[f"{name}_derivative"] = float(turned[place].detach()), reach / abs(here)
        numbers[f"{name}_force"] = float(force), reach / abs(here)
        # In units of the second order, which is what the theorem is about.
        lost = 1e-15 * abs(here) / config.step**2
        numbers[f"{name}_growth"] = grown / config.step**2, lost
        numbers[f"{name}_pull"] = -here * float(force), 10 * reach
        numbers[f"{name}_signed"] = math.copysign(1.0, here) * float(force), reach
    norm = by_norm(rate)
    force = float(torch.autograd.grad(norm, rate)[0])
    numbers["norm_force"] = force, 10 * reach
    numbers["norm_derivative"] = float(norm.detach()), reach
    moved_by = -config.step * g.detach()
    away = float(moved_by @ (moved_by + 2 * w.detach()))
    lost = 1e-15 * float(w.detach() @ w.detach()) / config.step
    numbers["norm_growth"] = away / config.step**2, lost
    numbers |= _bracket(w, scales, (low, high), -force * float(size))
    return numbers | _along_the_ray(
        loss, w, scales, (low, high), radial, float(size), g.detach()
    )


def _bracket(
    w: "Tensor", scales: "Tensor", tensors: tuple["Tensor", "Tensor"], pull: float
) -> dict[str, tuple[float, float]]:
    """Return the force on the norm in units of both gradients, and their ratio."""
    import torch

    m, p = (t.ndim for t in tensors)
    low, high = (
        float(torch.autograd.grad(by.detach() * _form(t, w), w)[0].norm())
        for by, t in zip((scales[:m].prod(), scales.prod()), tensors, strict=True)
    )
    if not low:
        return {"gradient_ratio": (0.0, 0.0)}
    unit = m * low**2 + p * high**2
    return {
        "bracket": (pull / unit, 1e-11),
        "gradient_ratio": (high / low, 1e-12 * high / low),
    }


def _along_the_ray(
    loss: Any,
    w: "Tensor",
    scales: "Tensor",
    tensors: tuple["Tensor", "Tensor"],
    radial: "Tensor",
    size: float,
    g: "Tensor",
) -> dict[str, tuple[float, float]]:
    """Differentiate by the weights' size, with free and with normalised mixtures."""
    import torch

    m, p = (t.ndim for t in tensors)
    c = torch.tensor(size, dtype=torch.float64, requires_grad=True)
    free = size * torch.autograd.grad(loss(c * radial, scales), c)[0]
    # Mixtures whose squares add to one at every size, as the paper's do, and the
    # spin glasses they mix, which see the direction alone.
    parts = [
        by.detach() * _form(t, w.detach())
        for by, t in zip((scales[:m].prod(), scales.prod()), tensors, strict=True)
    ]
    total = torch.sqrt(parts[0] ** 2 + parts[1] ** 2)
    weights = [part.abs() / total for part in parts]
    made = [weight * (c / size) ** r for weight, r in zip(weights, (m, p), strict=True)]
    length = torch.sqrt(made[0] ** 2 + made[1] ** 2)
    signs = [torch.sign(part) * total / length for part in parts]
    mixed = signs[0] * made[0] + signs[1] * made[1]
    # Where both parts vanish the mixture has no direction, and its slope is rounding.
    vanish = float(total) < 1e-12 * float(g.norm() + 1)
    tied = 0.0 if vanish else size * torch.autograd.grad(mixed, c)[0]
    u = w.detach().clone().requires_grad_()
    inverse = math.sqrt(len(w)) / u.norm()
    turn = torch.autograd.grad(inverse, u)[0] @ g.detach()
    reach = EPS * (1 + float(total)) * p
    return {
        "euler_free": (float(free), reach),
        "euler_tied": (float(tied), reach),
        "inverse_size_turn": (float(turn), EPS * (1 + abs(float(turn)))),
    }


def _form(tensor: "Tensor", w: "Tensor") -> "Tensor":
    for _ in range(tensor.ndim):
        tensor = tensor @ w
    return tensor


def _network(config: Config, trial: int) -> list[Row]:
    """Differentiate a real network by its first scale, deviations live and held."""
    import torch

    plan = LayerwiseBlueprint(
        inputs=config.width, width=config.width, depth=3, classes=1, norm="scalar"
    )
    rng = stream(config.seed, "two degrees", "inputs", trial)
    x = torch.tensor(rng.normal(size=(64, config.width)))
    network = networks.build(plan, seed=trial)
    for layer in network.layers:
        layer.norm.momentum = 1.0  # type: ignore[assignment]
    rows: list[Row] = []
    for held in (False, True):
        network.train(not held)
        output = network(x).mean()
        scale: Any = network.first.norm.scale
        (slope,) = torch.autograd.grad(output, scale)
        value = abs(float((scale * slope - output).detach())) / abs(
            float(output.detach())
        )
        error = EPS * np.sqrt(plan.parameters)
        labels = {"quantity": "scale_gap", "held": held, "trial": trial}
        rows.append({**labels, "value": value, "error": float(error)})
    return rows

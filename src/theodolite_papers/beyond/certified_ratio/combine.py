"""Train one network, and certify its ratio at even times."""

from typing import TYPE_CHECKING

import numpy as np

from theodolite import networks
from theodolite.core import (
    AffineLayer,
    Cell,
    NonlinearLayer,
    ResidualLayer,
    Row,
    Rows,
    SystemBlueprint,
    SystemLayer,
    named_rows,
    stream,
)

from .config import BOTH, NORMS, SKIPS, TASKS, Config

if TYPE_CHECKING:
    from torch import Tensor, nn

# Upper bound of a branch's matrices beside a skip, as theorem 4.7 wants them.
BRANCH = 0.9
# Relative error of singular values, whose least are far below the largest.
ERROR = 1e-3


def plan_of(kind: str, config: Config) -> SystemBlueprint:
    """Return the blueprint of a kind of network."""
    width, norms, skips = config.width, kind in (BOTH, NORMS), kind in (BOTH, SKIPS)

    def affine(out: int) -> AffineLayer:
        if not norms:
            return AffineLayer(into=width, out=out)
        # Normalised rows have norm one at most, and about (n / (n + 1))^½ at first.
        scale = BRANCH / out**0.5 if skips else ((width + 1) / width) ** 0.5
        norm = "weight_norm"
        return AffineLayer(into=width, out=out, parameterisation=norm, scale=scale)

    entry = "entry_norm" if norms else "plain"
    layers: list[SystemLayer] = [
        AffineLayer(into=width, out=width, parameterisation=entry)
    ]
    for out in (width, config.classes):
        parts = (affine(width), NonlinearLayer(activation="tanh"), affine(out))
        layers += (ResidualLayer(branch=parts),) if skips else parts
    return SystemBlueprint(inputs=width, layers=tuple(layers))


def network_of(kind: str, config: Config, trial: int) -> "nn.Module":
    """Return a network of normal weights; those without norms have its matrices."""
    import torch

    normed = BOTH if kind in (BOTH, SKIPS) else NORMS
    pair = [
        networks.build(plan_of(one, config), seed=trial).double()
        for one in (normed, kind)
    ]
    draws = stream(trial, "weights")
    affine = [[m for m in one.modules() if hasattr(m, "matrix")] for one in pair]
    with torch.no_grad():
        for first, own in zip(*affine, strict=True):
            drawn = draws.normal(size=tuple(first.weight.shape))
            first.weight.copy_(torch.as_tensor(drawn))
            own.weight.copy_(first.weight if kind == normed else first.matrix)
    return pair[1]


def combine(config: Config, cell: Cell) -> Rows:
    """Train one network; those of a trial share data and initial draws."""
    import torch

    from theodolite.certificates import certificate

    cost, rate = TASKS[cell["task"]]
    draws = stream(cell["trial"], "data")
    shape = config.samples, config.width
    x = torch.as_tensor(draws.normal(size=shape) / np.sqrt(config.width))
    y = torch.as_tensor(draws.integers(0, config.classes, config.samples))
    if cost == "square":
        y = torch.nn.functional.one_hot(y, config.classes).double()
    network = network_of(cell["kind"], config, cell["trial"])
    rows: list[Row] = []
    for step in range(config.steps + 1):
        loss = _loss(cost, network(x), y)
        if not torch.isfinite(loss):
            lost = {"quantity": "loss", "step": config.steps, "value": None}
            return Rows([*rows, {**lost, "error": 0.0}])
        if step in config.times:
            bounds = certificate(network, (x, y), cost, measure_kernel=False)
            for name in ("ratio_bound", "kernel_bound", "ratio", "loss"):
                value = getattr(bounds, name)
                rows += named_rows({name: value}, ERROR * value, step=step)
        slopes = torch.autograd.grad(loss, list(network.parameters()))
        with torch.no_grad():
            for weight, slope in zip(network.parameters(), slopes, strict=True):
                weight -= rate * slope
    return Rows(rows)


def _loss(cost: str, outputs: "Tensor", targets: "Tensor") -> "Tensor":
    import torch

    if cost == "square":
        return (outputs - targets).square().sum() / (2 * len(targets))
    return torch.nn.functional.cross_entropy(outputs, targets)

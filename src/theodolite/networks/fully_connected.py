"""Fully connected residual networks: one scale per layer, or shared weights."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import LayerwiseBlueprint, PathBlueprint, stream

from .layers import require_rows, uninitialised_linear


class PathNetwork(nn.Module):
    """ReLU layers, all except the first with a skip; outputs the sum of the last.

    ``blueprint`` is the blueprint it was built from. The different weights are one
    parameter, ``weights``; ``matrix`` lays them out. Each layer has a separate ReLU
    in ``gates``, so that hooks can record which units are open.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, Eq 7.
    """

    def __init__(
        self, blueprint: PathBlueprint, *, dtype: torch.dtype = torch.float64
    ) -> None:
        super().__init__()
        self.blueprint = blueprint
        self.weights = nn.Parameter(torch.empty(blueprint.parameters, dtype=dtype))
        self.gates = nn.ModuleList(nn.ReLU() for _ in range(blueprint.depth))
        for layer, index in enumerate(blueprint.indices):
            self.register_buffer(f"index_{layer}", torch.as_tensor(index))

    def matrix(self, layer: int) -> Tensor:
        """Return the matrix of a layer, counted from 0, units in columns."""
        return self.weights[self.get_buffer(f"index_{layer}")]

    def forward(self, x: Tensor) -> Tensor:
        """Map a batch of rows to one number each."""
        require_rows(x, self.blueprint.inputs, "flatten or cut")
        for layer, gate in enumerate(self.gates):
            branch = gate(x @ self.matrix(layer))
            x = branch + x if layer and self.blueprint.skip else branch
        return x.sum(dim=1)


def build_path_network(
    blueprint: PathBlueprint, *, seed: int, dtype: torch.dtype
) -> PathNetwork:
    """Make a network with normal weights, scaled to the blueprint's ``rms``."""
    network = PathNetwork(blueprint, dtype=dtype)
    samples = stream(seed).normal(size=blueprint.parameters)
    samples *= blueprint.rms / np.sqrt(np.mean(samples**2))
    with torch.no_grad():
        network.weights.copy_(torch.as_tensor(samples))
    return network


class ScalarNorm(nn.Module):
    r"""Multiply by $\lambda/\sigma$, one number for all units; no shift.

    $\sigma$ is the mean over units of their standard deviations: of the batch in
    train mode, and differentiated through; a running mean in eval mode.

    Attributes:
        scale: $\lambda$, trained.
        running_deviation: Running mean of $\sigma$.
        momentum: Weight of a new batch in the running mean.
        eps: Added to variances, since a unit may be silent on a batch.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, equation 20.

    Example:
        >>> norm = ScalarNorm(eps=0.0)
        >>> norm(torch.tensor([[0.0], [4.0]])).tolist()
        [[0.0], [2.0]]
    """

    running_deviation: Tensor

    def __init__(self, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("running_deviation", torch.ones(()))
        self.momentum, self.eps = momentum, eps

    def deviation(self, x: Tensor) -> Tensor:
        """Return the mean of the units' standard deviations in a batch."""
        return (x.var(dim=0, correction=0) + self.eps).sqrt().mean()

    def forward(self, x: Tensor) -> Tensor:
        """Scale a batch of rows."""
        if not self.training:
            return x * (self.scale / self.running_deviation)
        deviation = self.deviation(x)
        self.running_deviation.lerp_(deviation.detach(), self.momentum)
        return x * (self.scale / deviation)


class LayerwiseLayer(nn.Module):
    """One layer, its scale, and the identity around it if it has one."""

    def __init__(self, into: int, out: int, *, norm: str, skip: bool) -> None:
        super().__init__()
        self.weight: Any = uninitialised_linear(into, out, bias=False)
        self.norm: nn.Module = nn.Identity()
        if norm == "scalar":
            self.norm = ScalarNorm()
        elif norm == "batch":
            self.norm = nn.BatchNorm1d(out)
        self.before = norm == "batch"
        self.skip = skip

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to a batch of rows."""
        z = self.weight(x)
        z = functional.relu(self.norm(z)) if self.before else self.norm(z.relu())
        return x + z if self.skip else z


class LayerwiseNetwork(nn.Module):
    """A layer without skip, a chain of units with one, and a linear readout.

    ``blueprint`` is the blueprint it was built from.
    """

    def __init__(self, blueprint: LayerwiseBlueprint) -> None:
        super().__init__()
        self.blueprint = blueprint
        n, norm = blueprint.width, blueprint.norm
        self.first = LayerwiseLayer(blueprint.inputs, n, norm=norm, skip=False)
        self.units = nn.ModuleList(
            LayerwiseLayer(n, n, norm=norm, skip=True) for _ in range(blueprint.units)
        )
        self.head: Any = uninitialised_linear(n, blueprint.classes, bias=False)

    @property
    def layers(self) -> "list[LayerwiseLayer]":
        """All layers in the order applied."""
        return [self.first, *self.units]  # type: ignore[list-item]

    def forward(self, x: Tensor) -> Tensor:
        """Map a batch of rows to scores."""
        require_rows(x, self.blueprint.inputs, "flatten")
        x = self.first(x)
        for unit in self.units:
            x = unit(x)
        return self.head(x)


def layer_scales(network: LayerwiseNetwork) -> np.ndarray:
    r"""Return $\lambda_l$ of every layer; for batch norms, the mean magnitude.

    Example:
        >>> plan = LayerwiseBlueprint(inputs=2, width=3, depth=2, classes=2)
        >>> from theodolite.networks import build
        >>> layer_scales(build(plan, seed=0))
        array([1., 1.])
    """
    scales = []
    for layer in network.layers:
        norm = layer.norm
        if isinstance(norm, ScalarNorm):
            scales.append(float(norm.scale.detach()))
        elif isinstance(norm, nn.BatchNorm1d):
            scales.append(float(norm.weight.detach().abs().mean()))
        else:
            scales.append(1.0)
    return np.array(scales)


def build_layerwise(
    blueprint: LayerwiseBlueprint, *, seed: int, dtype: torch.dtype
) -> LayerwiseNetwork:
    r"""Make a layerwise residual network; weights are normal of variance 1/fan-in.

    All draws are NumPy's from ``seed``, so blueprints that differ in ``norm`` alone
    start at the same weights.
    """
    network = LayerwiseNetwork(blueprint).to(dtype)
    rng = stream(seed)
    with torch.no_grad():
        for layer in network.layers:
            _draw_layer(layer.weight, rng, blueprint.init_scale)
        _draw_layer(network.head, rng, 1.0)
    return network


def _draw_layer(linear: nn.Linear, rng: np.random.Generator, scale: float) -> None:
    shape = tuple(linear.weight.shape)
    samples = scale * rng.normal(size=shape) / np.sqrt(shape[1])
    linear.weight.copy_(torch.as_tensor(samples))

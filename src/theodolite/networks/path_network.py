"""Fully connected residual networks whose weights may be shared."""

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import ConfigError, PathBlueprint, stream


class PathNetwork(nn.Module):
    """Layers of ReLUs, all but the first beside an identity; the output is their sum.

    ``blueprint`` remembers what it was built from. The different weights are one
    parameter, ``weights``; ``matrix`` lays them out. Each layer has a ReLU of its own
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
        wanted = self.blueprint.inputs
        if x.ndim != 2 or x.shape[1] != wanted:
            raise ConfigError(
                f"input of shape {tuple(x.shape)}: this network wants (samples, "
                f"{wanted}); flatten or cut the data to that width"
            )
        for layer, gate in enumerate(self.gates):
            branch = gate(x @ self.matrix(layer))
            x = branch + x if layer and self.blueprint.skip else branch
        return x.sum(dim=1)


def build_path_network(
    blueprint: PathBlueprint,
    *,
    seed: int,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> PathNetwork:
    """Make a network with normal weights, scaled to the blueprint's root mean square.

    Example:
        >>> plan = PathBlueprint(inputs=3, width=4, depth=5, unique=2)
        >>> build_path_network(plan, seed=0)(torch.ones(2, 3).double()).shape
        torch.Size([2])
    """
    network = PathNetwork(blueprint, dtype=dtype)
    drawn = stream(seed).normal(size=blueprint.parameters)
    drawn *= blueprint.rms / np.sqrt(np.mean(drawn**2))
    with torch.no_grad():
        network.weights.copy_(torch.as_tensor(drawn))
    return network.to(device)

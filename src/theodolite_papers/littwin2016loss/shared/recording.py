"""A network run once, with its gates recorded as they were."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite import networks
from theodolite.core import PathBlueprint


@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded:
    """What one pass through a network showed.

    Attributes:
        matrices: Weights of the layers, units in columns.
        gates: Which units were open, a layer each, shape (samples, width).
        output: The outputs, shape (samples,).
    """

    matrices: list[np.ndarray]
    gates: list[np.ndarray]
    output: np.ndarray


def recorded(network: "networks.PathNetwork", x: np.ndarray) -> Recorded:
    """Run a network on inputs, shape (samples, inputs), and keep its gates."""
    import torch

    gates: list[np.ndarray] = []

    def keep(module: Any, given: Any, found: Any) -> None:
        gates.append((found > 0).cpu().numpy())

    hooks = [gate.register_forward_hook(keep) for gate in network.gates]
    try:
        with torch.no_grad():
            device = network.weights.device
            output = network(torch.as_tensor(x, device=device)).cpu().numpy()
            layers = range(network.blueprint.depth)
            matrices = [network.matrix(layer).cpu().numpy() for layer in layers]
    finally:
        for hook in hooks:
            hook.remove()
    return Recorded(matrices=matrices, gates=gates, output=output)


def built(
    blueprint: PathBlueprint, *, seed: int, device: str = "cpu"
) -> "networks.PathNetwork":
    """Build a network in double precision."""
    return networks.build(blueprint, seed=seed, device=device)

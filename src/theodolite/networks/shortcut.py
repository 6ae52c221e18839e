"""n-shortcut networks, and plain networks with the same layers."""

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.networks import undrawn
from theodolite.networks.activations import torch_activation
from theodolite.networks.initialisation import draw_weights


class ShortcutUnit(nn.Module):
    r"""One unit: $x + \sigma_{post}(W_n\,\sigma_{mid}(\cdots W_1\,\sigma_{pre}(x)))$.

    Without ``skip`` the identity is left out.
    """

    def __init__(self, blueprint: ShortcutBlueprint, *, dtype: torch.dtype) -> None:
        super().__init__()
        width, last = blueprint.width, blueprint.shortcut - 1
        self.layers = nn.ModuleList(
            undrawn.linear(
                width,
                width,
                bias=blueprint.bias and place < last,
                dtype=dtype,
            )
            for place in range(blueprint.shortcut)
        )
        self.skip = blueprint.skip
        self.pre = torch_activation(blueprint.pre)
        self.mid = torch_activation(blueprint.mid)
        self.post = torch_activation(blueprint.post)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the unit to a batch of rows."""
        z = self.pre(x)
        for place, layer in enumerate(self.layers):
            z = layer(self.mid(z) if place else z)
        z = self.post(z)
        return x + z if self.skip else z


class ShortcutNetwork(nn.Module):
    """A chain of equal units; ``blueprint`` remembers what it was built from.

    References:
        Li et al. (2016), Demystifying ResNet, definitions 1 and 2.
    """

    def __init__(
        self, blueprint: ShortcutBlueprint, *, dtype: torch.dtype = torch.float64
    ) -> None:
        super().__init__()
        self.blueprint = blueprint
        self.units = nn.ModuleList(
            ShortcutUnit(blueprint, dtype=dtype) for _ in range(blueprint.units)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map a batch of rows of the blueprint's width."""
        width = self.blueprint.width
        if x.ndim != 2 or x.shape[1] != width:
            raise ConfigError(
                f"input of shape {tuple(x.shape)}: this network wants (samples, "
                f"{width}); flatten or whiten the data to that width"
            )
        for unit in self.units:
            x = unit(x)
        return x


def build_shortcut(
    blueprint: ShortcutBlueprint,
    *,
    seed: int,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> ShortcutNetwork:
    """Make an n-shortcut network; biases start at zero.

    Example:
        >>> plan = ShortcutBlueprint(width=4, depth=6, shortcut=3)
        >>> network = build_shortcut(plan, seed=0)
        >>> network(torch.ones(2, 4, dtype=torch.float64)).shape
        torch.Size([2, 4])
    """
    network = ShortcutNetwork(blueprint, dtype=dtype)
    set_weights(network, draw_weights(blueprint, seed=seed))
    return network.to(device)


def linear_layers(network: ShortcutNetwork) -> list[nn.Linear]:
    """Return the layers in the order applied."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def get_weights(network: ShortcutNetwork) -> np.ndarray:
    """Return all matrices as float64, shape (depth, width, width)."""
    return np.stack(
        [
            layer.weight.detach().cpu().numpy().astype(np.float64)
            for layer in linear_layers(network)
        ]
    )


def set_weights(network: ShortcutNetwork, weights: np.ndarray) -> None:
    """Copy matrices into the network and set its biases to zero."""
    layers = linear_layers(network)
    width = network.blueprint.width
    if weights.shape != (len(layers), width, width):
        raise ConfigError(
            f"weights of shape {weights.shape} for a network that wants "
            f"{(len(layers), width, width)}: draw them from the same blueprint"
        )
    with torch.no_grad():
        for layer, weight in zip(layers, weights, strict=True):
            layer.weight.copy_(torch.as_tensor(weight))
            if layer.bias is not None:
                layer.bias.zero_()

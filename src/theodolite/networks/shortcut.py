"""n-shortcut networks, and plain networks with the same layers."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import (
    ConfigError,
    ShortcutBlueprint,
    parse_activation,
    stream,
)

from .layers import require_rows, uninitialised_linear

Map = Callable[[Tensor], Tensor]


def torch_activation(spec: str) -> Map:
    """Return the torch function of an activation that a blueprint names.

    Example:
        >>> torch_activation("polynomial:2,1")(torch.tensor(3.0))
        tensor(15.)
    """
    name, coefficients = parse_activation(spec)
    if name == "polynomial":
        return lambda z: sum(
            (c * z ** (power + 1) for power, c in enumerate(coefficients)),
            torch.zeros_like(z),
        )
    return _TABLE[name]


_TABLE: dict[str, Map] = {
    "identity": lambda z: z,
    "relu": functional.relu,
    "tanh": torch.tanh,
    "symmetric_sigmoid": lambda z: torch.tanh(z / 2),
    "silu": functional.silu,
    "exp": torch.exp,
}


def initial_weights(blueprint: ShortcutBlueprint, *, seed: int) -> np.ndarray:
    r"""Draw all matrices of an n-shortcut network, shape (depth, width, width).

    ``xavier``: independent normal entries of variance $1/d$ (fan-in and fan-out are
    $d$). ``small``: the same times ``init_scale``. ``orthogonal``: Haar measure, by QR
    of a normal matrix with the signs of R's diagonal moved into Q. ``zero``: zeros.

    References:
        Glorot & Bengio (2010); Saxe et al. (2013); Li et al. (2016), Demystifying
        ResNet, section 4.1, for the factor 0.01.

    Example:
        >>> plan = ShortcutBlueprint(width=3, depth=2, init="orthogonal")
        >>> w = initial_weights(plan, seed=0)[0]
        >>> bool(np.allclose(w @ w.T, np.eye(3)))
        True
    """
    d, rng = blueprint.width, stream(seed)
    shape = (blueprint.depth, d, d)
    if blueprint.init == "zero":
        return np.zeros(shape)
    normal = rng.normal(size=shape)
    if blueprint.init == "orthogonal":
        q, r = np.linalg.qr(normal)
        return q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
    scale = blueprint.init_scale if blueprint.init == "small" else 1.0
    return scale * normal / np.sqrt(d)


class ShortcutUnit(nn.Module):
    r"""One unit: $x + \sigma_{post}(W_n\,\sigma_{mid}(\cdots W_1\,\sigma_{pre}(x)))$.

    Without ``skip`` the identity is left out.
    """

    def __init__(self, blueprint: ShortcutBlueprint, *, dtype: torch.dtype) -> None:
        super().__init__()
        width, last = blueprint.width, blueprint.shortcut - 1
        self.layers = nn.ModuleList(
            uninitialised_linear(
                width, width, bias=blueprint.bias and place < last, dtype=dtype
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
    """A chain of equal units; ``blueprint`` is the blueprint it was built from.

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
        require_rows(x, self.blueprint.width, "flatten or whiten")
        for unit in self.units:
            x = unit(x)
        return x


def build_shortcut(
    blueprint: ShortcutBlueprint, *, seed: int, dtype: torch.dtype
) -> ShortcutNetwork:
    """Make an n-shortcut network; biases start at zero."""
    network = ShortcutNetwork(blueprint, dtype=dtype)
    set_weights(network, initial_weights(blueprint, seed=seed))
    return network


def _linear_layers(network: ShortcutNetwork) -> list[nn.Linear]:
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def get_weights(network: ShortcutNetwork) -> np.ndarray:
    """Return all matrices as float64, shape (depth, width, width)."""
    return np.stack(
        [
            layer.weight.detach().cpu().numpy().astype(np.float64)
            for layer in _linear_layers(network)
        ]
    )


def set_weights(network: ShortcutNetwork, weights: np.ndarray) -> None:
    """Copy matrices into the network and set its biases to zero."""
    layers = _linear_layers(network)
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

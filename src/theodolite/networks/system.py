"""Multilayer parameterised systems as modules."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    ConfigError,
    ConvolutionLayer,
    FlattenLayer,
    NonlinearLayer,
    ResidualLayer,
    SystemBlueprint,
    SystemLayer,
    stream,
)


class ParameterisedAffine(nn.Module):
    r"""$k P(w) z + b$ for each sample, or the convolution with that kernel.

    Attributes:
        layer: The layer description it was built from.
        weight: w, or the directions v.
        lengths: g of ``length_direction``, else None.
        bias: b, or None.
    """

    def __init__(self, layer: AffineLayer | ConvolutionLayer) -> None:
        super().__init__()
        self.layer = layer
        ends = (*layer.kernel,) if isinstance(layer, ConvolutionLayer) else ()
        self.weight = nn.Parameter(torch.empty(layer.out, layer.into, *ends))
        lengths = layer.parameterisation == "length_direction"
        self.lengths = nn.Parameter(torch.ones(layer.out)) if lengths else None
        self.bias = nn.Parameter(torch.zeros(layer.out)) if layer.bias else None

    @property
    def matrix(self) -> Tensor:
        """Return k P(w), in the shape of the weights."""
        w, eps = self.weight, self.layer.eps
        if self.layer.parameterisation == "weight_norm":
            axes = tuple(range(1, w.ndim))
            w = w * torch.rsqrt(eps + w.square().sum(axes, keepdim=True))
        elif self.layer.parameterisation == "entry_norm":
            w = w * torch.rsqrt(eps + w.square())
        elif self.lengths is not None:
            flat = w.flatten(1)
            unit = flat / flat.norm(dim=1, keepdim=True)
            w = (self.lengths[:, None] * unit).view_as(w)
        return self.layer.scale * w

    def forward(self, x: Tensor) -> Tensor:
        """Map a batch of rows, or of images."""
        if isinstance(self.layer, AffineLayer):
            return functional.linear(x, self.matrix, self.bias)
        return functional.conv2d(
            x, self.matrix, self.bias, self.layer.stride, self.layer.padding
        )


class Nonlinearity(nn.Module):
    """A function of each entry, by its name in a blueprint."""

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Map every entry."""
        return _FUNCTIONS[self.activation](x)

    def extra_repr(self) -> str:
        """Return the name."""
        return self.activation


class ResidualBlock(nn.Module):
    """A branch beside the identity, cut or padded with zeros where features change."""

    def __init__(self, branch: nn.Sequential) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        """Map a batch."""
        z = self.branch(x)
        more = z.shape[1] - x.shape[1]
        skip = x[:, : z.shape[1]]
        if more > 0:
            skip = functional.pad(skip, (0, 0) * (x.ndim - 2) + (0, more))
        return skip + z


class SystemNetwork(nn.Module):
    """The layers of a system in a row; ``blueprint`` describes them.

    Attributes:
        blueprint: The system.
        layers: One module per layer.
    """

    def __init__(self, blueprint: SystemBlueprint) -> None:
        super().__init__()
        self.blueprint = blueprint
        self.layers = _chain(blueprint.layers, blueprint.shapes[0])

    @property
    def units(self) -> list[ResidualBlock]:
        """Residual blocks, in order."""
        return [one for one in self.layers if isinstance(one, ResidualBlock)]

    def forward(self, x: Tensor) -> Tensor:
        """Map a batch of samples."""
        wanted = self.blueprint.shapes[0]
        if tuple(x.shape[1:]) != wanted:
            raise ConfigError(
                f"input of shape {tuple(x.shape)}: this network wants samples of shape "
                f"{wanted} along the first axis; reshape the data"
            )
        return self.layers(x)


def build_system(
    blueprint: SystemBlueprint, *, seed: int, dtype: torch.dtype
) -> SystemNetwork:
    r"""Make the network of a system.

    Weights are normal of variance 1/fan-in before they are parameterised, biases zero,
    lengths those of their directions.
    """
    network = SystemNetwork(blueprint).to(dtype)
    rng = stream(seed)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, ParameterisedAffine):
                _draw(module, rng)
    return network


def _draw(module: ParameterisedAffine, rng: np.random.Generator) -> None:
    shape = tuple(module.weight.shape)
    samples = rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
    module.weight.copy_(torch.as_tensor(samples))
    if module.lengths is not None:
        module.lengths.copy_(module.weight.flatten(1).norm(dim=1))


def _chain(layers: tuple[SystemLayer, ...], shape: tuple[int, ...]) -> nn.Sequential:
    modules = []
    for layer in layers:
        modules.append(_module(layer, shape))
        shape = layer.shape_after(shape)
    return nn.Sequential(*modules)


def _module(layer: SystemLayer, shape: tuple[int, ...]) -> nn.Module:
    if isinstance(layer, AffineLayer | ConvolutionLayer):
        return ParameterisedAffine(layer)
    if isinstance(layer, NonlinearLayer):
        return Nonlinearity(layer.activation)
    if isinstance(layer, BatchNormLayer):
        kind = nn.BatchNorm1d if len(shape) == 1 else nn.BatchNorm2d
        norm = kind(layer.features, eps=layer.eps, affine=layer.affine)
        return norm.train(layer.statistics == "batch")
    if isinstance(layer, ResidualLayer):
        return ResidualBlock(_chain(layer.branch, shape))
    if isinstance(layer, FlattenLayer):
        return nn.Flatten()
    raise ConfigError(
        f"a layer of type {type(layer).__name__} has no module: use the kinds of "
        "layers that core exports"
    )


def _ramp(z: Tensor) -> Tensor:
    up = z.clamp(min=0)
    return torch.where(up < 1, up.square() / 2, up - 0.5)


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda z: z,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "symmetric_sigmoid": lambda z: torch.tanh(z / 2),
    "log_sigmoid": functional.logsigmoid,
    "softplus": functional.softplus,
    "softsign": functional.softsign,
    "tanhshrink": functional.tanhshrink,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "elu": functional.elu,
    "ramp": _ramp,
    "relu": functional.relu,
    "three_halves": lambda z: z.sign() * z.abs() ** 1.5,
}

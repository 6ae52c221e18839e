"""Small convolutional networks of two blocks, with and without skips."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import ConfigError, TwoBlockBlueprint, derive, stream

from .average_skip import AverageSkip, HaarSkip
from .layers import uninitialised_conv, uninitialised_linear


class RandomSkip(nn.Module):
    r"""A fixed random map of blocks of pixels with orthonormal rows, or columns.

    Every block of $s \times s$ pixels of all channels goes to one pixel by the same
    matrix of $c_{out}$ rows; all its singular values are ``scale``.

    Args:
        channels_in: Input channels.
        channels_out: Output channels.
        stride: Side of a block of pixels.
        scale: Factor of the whole.
        seed: Seed of the matrix, which NumPy draws.

    Example:
        >>> skip = RandomSkip(1, 4, stride=2, seed=0)
        >>> image = torch.ones(1, 1, 2, 2)
        >>> round(float(skip(image).norm()), 6)
        2.0
    """

    weight: Tensor

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        stride: int = 1,
        *,
        scale: float = 1.0,
        seed: int,
    ) -> None:
        super().__init__()
        patch = channels_in * stride**2
        tall = stream(seed).normal(size=(max(patch, channels_out),) * 2)
        rotation = np.linalg.qr(tall)[0][:channels_out, :patch]
        shape = (channels_out, channels_in, stride, stride)
        self.register_buffer("weight", torch.as_tensor(rotation.reshape(shape)))
        self.stride, self.scale = stride, scale

    def forward(self, x: Tensor) -> Tensor:
        """Map (samples, channels, height, width) to fewer pixels."""
        weight = self.weight.to(x)
        return self.scale * functional.conv2d(x, weight, stride=self.stride)


class Zero(nn.Module):
    """Map to zero, where nothing is added."""

    def forward(self, x: Tensor) -> float:
        """Return 0."""
        return 0.0


class Branch(nn.Module):
    """Twice batch normalisation, ReLU and a convolution; ``entered`` is between."""

    def __init__(self, into: int, out: int, first: Any, second: Any) -> None:
        super().__init__()
        self.norm_first, self.first = nn.BatchNorm2d(into), first
        self.norm_second, self.second = nn.BatchNorm2d(out), second
        self.beside: nn.Module = Zero()

    def activated(self, x: Tensor) -> Tensor:
        """Return the input of the first convolution and of a projection skip."""
        return functional.relu(self.norm_first(x))

    def inner(self, u: Tensor) -> Tensor:
        """Return the first convolution's output plus the fixed map's."""
        return self.first(u) + self.beside(u)

    def rest(self, u: Tensor) -> Tensor:
        """Map an activated input to the output."""
        return self.second(functional.relu(self.norm_second(self.inner(u))))


class KeepingBlock(nn.Module):
    """A block that keeps the shape, with the identity around it if it has a skip."""

    def __init__(self, plan: TwoBlockBlueprint) -> None:
        super().__init__()
        n, k = plan.width, plan.kernel
        first, second = (uninitialised_conv(n, n, k, padding=k // 2) for _ in range(2))
        self.branch, self.skips = Branch(n, n, first, second), plan.skips

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block."""
        z = self.branch.rest(self.branch.activated(x))
        return x + z if self.skips else z


class ShrinkingBlock(nn.Module):
    """A block that shrinks the image, with a projection and a fixed map beside it."""

    def __init__(self, plan: TwoBlockBlueprint, seed: int) -> None:
        super().__init__()
        n, wide, padding = plan.width, plan.wide, plan.last_padding
        first = uninitialised_conv(n, wide, 3, stride=2, padding=1)
        second = uninitialised_conv(wide, wide, 3, padding=padding)
        self.branch = Branch(n, wide, first, second)
        self.project: Any = Zero()
        self.added: nn.Module = Zero()
        if plan.skips:
            self.project = uninitialised_conv(n, wide, 1, stride=plan.stride)
        if plan.added and plan.place == "skip":
            self.added = _isometry(plan, plan.stride, seed)
        elif plan.added:
            self.branch.beside = _isometry(plan, 2, seed)

    def skip(self, u: Tensor) -> Tensor | float:
        """Map the activated input past the branch."""
        return self.project(u) + self.added(u)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block."""
        u = self.branch.activated(x)
        return self.branch.rest(u) + self.skip(u)


class TwoBlockNetwork(nn.Module):
    """A stem, two blocks, and a readout.

    ``blueprint`` is the blueprint it was built from. All layers after the stem are the
    span from ``keeping`` to ``head``.
    """

    def __init__(self, blueprint: TwoBlockBlueprint, *, seed: int) -> None:
        super().__init__()
        self.blueprint = blueprint
        plan = blueprint
        self.stem: Any = uninitialised_conv(1, plan.width, plan.stem_kernel)
        self.pool = nn.AvgPool2d(plan.stem_pool)
        self.keeping = KeepingBlock(plan)
        self.shrinking = ShrinkingBlock(plan, seed)
        self.norm = nn.BatchNorm1d(plan.features)
        self.head: Any = uninitialised_linear(plan.features, plan.classes)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (samples, 1, side, side) to scores."""
        side = self.blueprint.side
        if x.ndim != 4 or x.shape[1:] != (1, side, side):
            raise ConfigError(
                f"input of shape {tuple(x.shape)}: this network wants (samples, 1, "
                f"{side}, {side}); reshape the images to that"
            )
        z = self.shrinking(self.keeping(self.pool(self.stem(x))))
        return self.head(functional.relu(self.norm(z.flatten(1))))


def build_two_block(
    blueprint: TwoBlockBlueprint, *, seed: int, dtype: torch.dtype
) -> TwoBlockNetwork:
    r"""Make a network of two blocks.

    ``default`` weights and all biases are uniform in $\pm 1/\sqrt{\text{fan-in}}$, as
    torch draws them; ``he`` weights are normal of variance 2/fan-in, ``xavier`` ones of
    2/(fan-in + fan-out), ``orthogonal`` ones have orthonormal rows or columns as a
    matrix of outputs by kernels. NumPy draws every tensor from a stream with the
    tensor's name, so that networks with other skips start at the same weights.
    """
    network = TwoBlockNetwork(blueprint, seed=seed).to(dtype)
    with torch.no_grad():
        for name, layer in network.named_modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                inside = name.startswith(("keeping", "shrinking"))
                scale = blueprint.init_scale if inside else 1.0
                _draw(layer, name, blueprint.init, scale, seed)
    return network


def _draw(
    layer: nn.Conv2d | nn.Linear, name: str, init: str, scale: float, seed: int
) -> None:
    shape = tuple(layer.weight.shape)
    out, fan_in = shape[0], math.prod(shape[1:])
    fan_out = out * math.prod(shape[2:])
    rng = stream(seed, "weights", name)
    bound = 1 / math.sqrt(fan_in)
    if init == "default":
        samples = rng.uniform(-bound, bound, size=shape)
    elif init == "orthogonal":
        square = rng.normal(size=(max(out, fan_in),) * 2)
        samples = np.linalg.qr(square)[0][:out, :fan_in].reshape(shape)
    else:
        variance = 2 / fan_in if init == "he" else 2 / (fan_in + fan_out)
        samples = math.sqrt(variance) * rng.normal(size=shape)
    layer.weight.copy_(torch.as_tensor(scale * samples))
    biases = stream(seed, "biases", name).uniform(-bound, bound, size=out)
    assert layer.bias is not None
    layer.bias.copy_(torch.as_tensor(biases))


def _isometry(plan: TwoBlockBlueprint, stride: int, seed: int) -> nn.Module:
    shape = (plan.width, plan.wide, stride)
    if plan.isometry == "average":
        return AverageSkip(*shape, scale=plan.added)
    if plan.isometry == "haar":
        return HaarSkip(*shape, scale=plan.added)
    return RandomSkip(*shape, scale=plan.added, seed=derive(seed, "isometry"))

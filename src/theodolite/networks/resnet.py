"""Pre-activation ResNets with projections, and an identity added to those."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import ResnetBlueprint, stream

from .average_skip import AverageSkip
from .layers import image_norm, require_images, same_conv, uninitialised_linear


class ResnetUnit(nn.Module):
    """A chain of (normalise, ReLU, convolve) and the skip around it.

    Where the shape changes, the skip starts after the first ReLU: a projection, with
    an identity added if wanted.
    """

    def __init__(
        self, layers: list[tuple[int, int]], kernels: tuple[int, ...], stride: int
    ) -> None:
        super().__init__()
        wide = kernels.index(3)  # the first convolution that sees neighbours
        self.norms = nn.ModuleList(image_norm(into) for into, _ in layers)
        self.convolutions = nn.ModuleList(
            same_conv(a, b, kernel, stride if place == wide else 1)
            for place, (kernel, (a, b)) in enumerate(zip(kernels, layers, strict=True))
        )
        self.projection: nn.Module | None = None
        self.identity: nn.Module | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Apply the unit to a batch of images."""
        z = functional.relu(self.norms[0](x))
        if self.projection is not None:
            x = self.projection(z)
            if self.identity is not None:
                x = x + self.identity(z)
        z = self.convolutions[0](z)
        for norm, convolution in zip(
            self.norms[1:], self.convolutions[1:], strict=True
        ):
            z = convolution(functional.relu(norm(z)))
        return x + z


class ResnetNetwork(nn.Module):
    """Stem, stages of units, mean over pixels, classifier.

    ``blueprint`` is the blueprint it was built from.
    """

    def __init__(self, blueprint: ResnetBlueprint) -> None:
        super().__init__()
        self.blueprint = blueprint
        large = blueprint.stem == "large"
        self.stem = same_conv(
            blueprint.channels, blueprint.width, blueprint.stem_kernel, 1 + large
        )
        self.pool = nn.MaxPool2d(3, stride=2, padding=1) if large else nn.Identity()
        self.units = nn.ModuleList(
            _unit(blueprint, *shape) for shape in blueprint.block_shapes
        )
        last = blueprint.block_shapes[-1][2]
        self.head: Any = uninitialised_linear(last, blueprint.classes)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (samples, channels, height, width) to scores."""
        require_images(x, self.blueprint.channels)
        x = self.pool(self.stem(x))
        for unit in self.units:
            x = unit(x)
        # A mean, since adaptive pooling has no deterministic backward on CUDA.
        return self.head(x.mean(dim=(2, 3)))


def build_resnet(
    blueprint: ResnetBlueprint, *, seed: int, dtype: torch.dtype
) -> ResnetNetwork:
    r"""Make a pre-activation ResNet.

    Convolutions, and the classifier with its bias, are uniform within
    $1/\sqrt{\text{fan-in}}$, torch's own initialisation; normalisations start at scale
    1 and shift 0. All draws are NumPy's from ``seed`` in the order of the units, a
    projection after its branch, so blueprints that differ in ``added_identity`` alone
    start at the same weights.
    """
    network = ResnetNetwork(blueprint).to(dtype)
    rng = stream(seed)
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                bound = 1 / np.sqrt(layer.weight[0].numel())
                for parameter in layer.parameters():
                    samples = rng.uniform(-bound, bound, size=tuple(parameter.shape))
                    parameter.copy_(torch.as_tensor(samples))
    return network


def _unit(
    blueprint: ResnetBlueprint, into: int, inner: int, out: int, stride: int
) -> ResnetUnit:
    layers = blueprint.layer_channels(into, inner, out)
    unit = ResnetUnit(layers, blueprint.kernels, stride)
    if stride > 1 or into != out:
        unit.projection = same_conv(into, out, 1, stride)
        if scale := blueprint.added_identity:
            unit.identity = AverageSkip(into, out, stride, scale=scale)
    return unit

"""Pre-activation residual networks for small images, with units of any length."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import PreactivationBlueprint, stream

from .layers import image_norm, require_images, same_conv, uninitialised_linear


class PreactivationUnit(nn.Module):
    """A chain of (normalise, ReLU, convolve), and the identity around it.

    Where the chain changes the shape, the identity drops every second row and column
    and is padded with zero channels.
    """

    def __init__(
        self, layers: list[tuple[int, int]], *, skip: bool, norm: str = "batch"
    ) -> None:
        super().__init__()
        self.norms = nn.ModuleList(_norm(into, norm) for into, _ in layers)
        self.convolutions = nn.ModuleList(
            same_conv(a, b, 3, stride=1 if a == b else 2) for a, b in layers
        )
        self.skip = skip
        self.stride = 1 if layers[0][0] == layers[0][1] else 2
        self.extra = layers[-1][1] - layers[0][0]

    def forward(self, x: Tensor) -> Tensor:
        """Apply the unit to a batch of images."""
        z = x
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            z = convolution(functional.relu(norm(z)))
        if not self.skip:
            return z
        if self.stride > 1:
            x = functional.pad(
                x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.extra)
            )
        return x + z


class PreactivationNetwork(nn.Module):
    """Stem, chain of units, then normalise, ReLU, mean over pixels, classify.

    ``blueprint`` is the blueprint it was built from.
    """

    def __init__(self, blueprint: PreactivationBlueprint) -> None:
        super().__init__()
        self.blueprint = blueprint
        n, layers = blueprint.shortcut, blueprint.layer_channels
        self.stem = same_conv(blueprint.channels, blueprint.width, 3)
        self.units = nn.ModuleList(
            PreactivationUnit(
                list(layers[start : start + n]),
                skip=blueprint.skip,
                norm=blueprint.norm,
            )
            for start in range(0, len(layers), n)
        )
        self.norm = _norm(layers[-1][1], blueprint.norm)
        self.head: Any = uninitialised_linear(layers[-1][1], blueprint.classes)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (samples, channels, height, width) to scores."""
        require_images(x, self.blueprint.channels)
        x = self.stem(x)
        for unit in self.units:
            x = unit(x)
        # A mean, since adaptive pooling has no deterministic backward on CUDA.
        return self.head(functional.relu(self.norm(x)).mean(dim=(2, 3)))


def build_preactivation(
    blueprint: PreactivationBlueprint, *, seed: int, dtype: torch.dtype
) -> PreactivationNetwork:
    r"""Make a pre-activation network.

    Convolutions are normal with variance $2/(9\,c_{out})$, in the order applied, the
    last of every unit times ``branch_scale``; the
    classifier is uniform within $1/\sqrt{c}$, its bias zero; normalisations start at
    scale 1 and shift 0. All draws are NumPy's from ``seed``, so blueprints that
    differ in ``shortcut`` alone start at the same weights.

    References:
        He et al. (2015), Delving Deep into Rectifiers, eq. (14): variance by fan-out,
        as in the implementation that Li et al. (2016) used.
    """
    network = PreactivationNetwork(blueprint).to(dtype)
    rng = stream(seed)
    with torch.no_grad():
        for convolution in unit_convolutions(network, stem=True):
            shape = tuple(convolution.weight.shape)
            scale = np.sqrt(2.0 / (9 * shape[0]))
            convolution.weight.copy_(torch.as_tensor(scale * rng.normal(size=shape)))
        if blueprint.branch_scale != 1:
            for unit in network.units:
                unit.convolutions[-1].weight.mul_(blueprint.branch_scale)  # type: ignore
        shape = tuple(network.head.weight.shape)
        bound = 1 / np.sqrt(shape[1])
        network.head.weight.copy_(
            torch.as_tensor(rng.uniform(-bound, bound, size=shape))
        )
        network.head.bias.zero_()
    return network


def unit_convolutions(
    network: PreactivationNetwork, *, stem: bool = False
) -> list[nn.Conv2d]:
    """Return the convolutions of the units in order, after the stem if wanted."""
    layers = [c for c in network.modules() if isinstance(c, nn.Conv2d)]
    return layers if stem else layers[1:]


def _norm(channels: int, kind: str) -> nn.Module:
    return nn.Identity() if kind == "none" else image_norm(channels)

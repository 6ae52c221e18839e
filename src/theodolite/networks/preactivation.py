"""Pre-activation residual networks for small images, with units of any length."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import ConfigError, PreactivationBlueprint, stream
from theodolite.networks import undrawn


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
            _convolution(a, b, stride=1 if a == b else 2) for a, b in layers
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

    ``blueprint`` remembers what it was built from.
    """

    def __init__(self, blueprint: PreactivationBlueprint) -> None:
        super().__init__()
        self.blueprint = blueprint
        n, layers = blueprint.shortcut, blueprint.layer_channels
        self.stem = _convolution(blueprint.channels, blueprint.width)
        self.units = nn.ModuleList(
            PreactivationUnit(
                list(layers[start : start + n]),
                skip=blueprint.skip,
                norm=blueprint.norm,
            )
            for start in range(0, len(layers), n)
        )
        self.norm = _norm(layers[-1][1], blueprint.norm)
        self.head: Any = undrawn.linear(layers[-1][1], blueprint.classes)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (samples, channels, height, width) to scores."""
        wanted = self.blueprint.channels
        if x.ndim != 4 or x.shape[1] != wanted:
            raise ConfigError(
                f"input of shape {tuple(x.shape)}: this network wants (samples, "
                f"{wanted}, height, width); move the channels to the second place"
            )
        x = self.stem(x)
        for unit in self.units:
            x = unit(x)
        # A mean, since adaptive pooling has no deterministic backward on CUDA.
        return self.head(functional.relu(self.norm(x)).mean(dim=(2, 3)))


def build_preactivation(
    blueprint: PreactivationBlueprint,
    *,
    seed: int,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
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

    Example:
        >>> plan = PreactivationBlueprint(depth=8, shortcut=2, width=4)
        >>> build_preactivation(plan, seed=0)(torch.ones(2, 3, 8, 8)).shape
        torch.Size([2, 10])
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
    return network.to(device)


def unit_convolutions(
    network: PreactivationNetwork, *, stem: bool = False
) -> list[nn.Conv2d]:
    """Return the convolutions of the units in order, after the stem if wanted."""
    found = [c for c in network.modules() if isinstance(c, nn.Conv2d)]
    return found if stem else found[1:]


def _norm(channels: int, kind: str) -> nn.Module:
    if kind == "none":
        return nn.Identity()
    norm = nn.BatchNorm2d(channels)
    # The count serves only averages over all steps, and costs a kernel a layer.
    norm.num_batches_tracked = None
    return norm


def _convolution(into: int, out: int, stride: int = 1) -> nn.Conv2d:
    # The weights are drawn by the builder, so torch's generator stays untouched.
    made: Any = undrawn.convolution(into, out, 3, stride=stride, padding=1, bias=False)
    return made

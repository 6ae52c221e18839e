r"""Skips without parameters between different image shapes.

Notation: $s$ stride, $n$ number of spatial axes, $c$ channels. Every block of $s^n$
pixels becomes one pixel. The mean of a block times $s^{n/2}$ is its inner product with
a unit vector, so that the map has singular values 1; an average pool by itself has
$s^{-n/2}$. Where channels grow, zeros stand on both sides, and their singular values
are 0. The exact isometry puts into those channels what the mean leaves out: inner
products with further vectors of an orthonormal basis of the block.
"""

import math
from functools import reduce

import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import ConfigError, as_integer

_POOLS = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}


class _ShapeSkip(nn.Module):
    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        stride: int = 1,
        *,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        _check(channels_in, channels_out, stride, scale)
        self.channels_in, self.channels_out = channels_in, channels_out
        self.stride, self.scale = stride, scale

    def extra_repr(self) -> str:
        """Return shapes and scale."""
        scale = "" if self.scale == 1 else f", scale={self.scale:g}"
        return f"{self.channels_in}, {self.channels_out}, stride={self.stride}{scale}"


class AverageSkip(_ShapeSkip):
    r"""Average pool of stride $s$ times $s^{n/2}$, channels padded with zeros.

    Of $c_{out} - c_{in}$ new channels, the smaller half stands before the old ones and
    the rest behind. Singular values are ``scale`` on the old channels and 0 on the new.

    Args:
        channels_in: Input channels, on the second axis.
        channels_out: Output channels, at least as many.
        stride: Side of a block of pixels; sizes must be multiples of it.
        scale: Factor of the whole.

    References:
        MacDonald et al. (2023), On skip connections and normalisation layers in deep
        optimisation, eq. (15); the factor $s$ is of the authors' published code.

    Example:
        >>> AverageSkip(1, 3, stride=2)(torch.ones(1, 1, 2, 2)).flatten()
        tensor([0., 2., 0.])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map (samples, channels, *sizes) to fewer pixels and more channels."""
        axes = _axes(self, x)
        factor = self.scale
        if self.stride > 1:
            x = _POOLS[axes](x, self.stride)
            factor *= self.stride ** (axes / 2)
        if factor != 1:
            x = x * factor
        extra = self.channels_out - self.channels_in
        return _padded(x, extra // 2, extra - extra // 2)


class HaarSkip(_ShapeSkip):
    r"""The same with details in place of zeros: all singular values are ``scale``.

    The new channels hold details in the order of an orthonormal basis of the block, of
    all channels in turn. With $c_{out} \ge s^n c_{in}$ nothing is lost and the map is
    an isometry, zeros standing only where no detail is left; with fewer channels its
    adjoint is one. At stride 2 the basis is Haar's, at others Helmert's contrasts.

    Args:
        channels_in: Input channels, on the second axis.
        channels_out: Output channels, at least as many.
        stride: Side of a block of pixels; sizes must be multiples of it.
        scale: Factor of the whole.

    Example:
        >>> x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> HaarSkip(1, 4, stride=2)(x).flatten()
        tensor([-1.,  5., -2.,  0.])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map (samples, channels, *sizes) to fewer pixels and more channels."""
        axes = _axes(self, x)
        extra = self.channels_out - self.channels_in
        parts = _coefficients(x, self.stride, axes, 1 + -(-extra // self.channels_in))
        average, details = parts[:, 0], parts[:, 1:].flatten(1, 2)[:, :extra]
        missing = extra - details.shape[1]
        before = extra // 2 - missing // 2
        x = torch.cat((details[:, :before], average, details[:, before:]), dim=1)
        x = x if self.scale == 1 else x * self.scale
        return _padded(x, missing // 2, missing - missing // 2)


def _coefficients(x: Tensor, stride: int, axes: int, kept: int) -> Tensor:
    """Return (samples, vector of the basis, channel, *blocks), the first vectors."""
    samples, channels, *sizes = x.shape
    split = [part for size in sizes for part in (size // stride, stride)]
    blocks = [2 + 2 * axis for axis in range(axes)] if stride > 1 else []
    if not blocks:
        return x.unsqueeze(1)
    inside = [axis + 1 for axis in blocks]
    cut = x.reshape(samples, channels, *split).permute(0, 1, *blocks, *inside)
    basis = _basis(stride, axes)[:kept].to(x)
    return (cut.flatten(2 + axes) @ basis.T).movedim(-1, 1)


def _basis(stride: int, axes: int) -> Tensor:
    """Return an orthonormal basis of a block as rows, the constant vector first."""
    line = torch.zeros(stride, stride, dtype=torch.float64)
    line[0] = 1 / math.sqrt(stride)
    for row in range(1, stride):
        norm = math.sqrt(row * (row + 1))
        line[row, :row], line[row, row] = 1 / norm, -row / norm
    return reduce(torch.kron, [line] * axes)


def _padded(x: Tensor, before: int, after: int) -> Tensor:
    if not before and not after:
        return x
    return functional.pad(x, (0, 0) * (x.ndim - 2) + (before, after))


def _axes(skip: _ShapeSkip, x: Tensor) -> int:
    """Count the spatial axes of a batch that a skip can take."""
    axes, stride = x.ndim - 2, skip.stride
    if (
        axes < 0
        or x.shape[1] != skip.channels_in
        or (stride > 1 and axes not in _POOLS)
    ):
        sizes = "one to three sizes" if stride > 1 else "sizes"
        raise ConfigError(
            f"input of shape {tuple(x.shape)}: this skip wants (samples, "
            f"{skip.channels_in}, {sizes}); move the channels to the second place"
        )
    if any(size % stride for size in x.shape[2:]):
        raise ConfigError(
            f"input of shape {tuple(x.shape)}: sizes that are multiples of the stride "
            f"{stride} are wanted, since blocks of pixels tile the image; crop or pad "
            "it"
        )
    return axes


def _check(into: int, out: int, stride: int, scale: float) -> None:
    for name, value in (("channels_in", into), ("stride", stride)):
        as_integer(name, value, 1)
    if out < into:
        raise ConfigError(
            f"channels_out must be a whole number, at least channels_in = {into}, got "
            f"{out!r}: an identity has no room in fewer channels; keep the projection"
        )
    if not math.isfinite(scale):
        raise ConfigError(f"scale must be finite, got {scale!r}")

r"""Upper bounds of the norms of linear maps and of bilinear forms.

All are of Euclidean norms over the entries of tensors.

References:
    Ehlich & Zeller (1964), Schwankung von Polynomen zwischen Gitterpunkten.
    Duffin & Schaeffer (1938), Some properties of functions of exponential type.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# Relative rounding of norms of as many as a thousand million entries, and more.
UP = 1 + 1e-6
# Transforms of kernels with more channels than this are dearer than they are worth.
_CHANNELS = 128


def euclidean(x: Tensor) -> float:
    """Return a bound of the norm of a tensor."""
    return float(torch.linalg.vector_norm(x)) * UP + 1e-280


def repeats(change: Callable[[Tensor], Tensor], like: Tensor) -> float:
    """Return the norm of a map that moves, repeats or leaves out entries."""
    places = torch.arange(1, like.numel() + 1, dtype=torch.float64, device="cpu")
    counts = torch.bincount(change(places.reshape(like.shape)).long().reshape(-1))
    return math.sqrt(float(counts[1:].max())) if len(counts) > 1 else 0.0


class Norms:
    r"""Norms of a bilinear form f, by default of the product entry by entry.

    Attributes:
        cross: Bound of $\|f(a, b)\|$ where a and b have norm one.
    """

    cross = 1.0

    def fixing(self, place: int, fixed: Tensor, free: torch.Size) -> float:
        """Return the norm as a map of one argument, with the other fixed.

        Args:
            place: Which one is fixed: 0 or 1.
            fixed: Its value.
            free: Shape of the other.
        """
        del place
        full = torch.broadcast_shapes(fixed.shape, free)
        squares = fixed.square().expand(full).sum_to_size(free)
        return math.sqrt(float(squares.max())) * UP

    def passes(self, weights: Tensor, shape: torch.Size, result: torch.Size) -> bool:
        """Return whether weights of results are those of the first argument."""
        del weights
        return shape == result

    def weighted(self, fixed: Tensor, weights: Tensor) -> Tensor | None:
        """Return the second argument if results are multiplied by weights, if known."""


class Matrices(Norms):
    """Norms of the product of matrices."""

    def passes(self, weights: Tensor, shape: torch.Size, result: torch.Size) -> bool:
        """Return whether weights are those of rows."""
        return len(shape) == 2 == len(result) and weights.shape[-1] == 1

    def weighted(self, fixed: Tensor, weights: Tensor) -> Tensor | None:
        """Return the second matrix, if weights are those of its columns."""
        if fixed.ndim == 2 and weights.numel() == weights.shape[-1] == fixed.shape[-1]:
            return fixed * weights.reshape(-1)
        return None

    def fixing(self, place: int, fixed: Tensor, free: torch.Size) -> float:
        """Return the largest singular value, of as many as share the free one."""
        del place
        if fixed.ndim < 2:
            return euclidean(fixed)
        shared = math.prod(fixed.shape[:-2]) / math.prod(free[:-2])
        return root_of_gram(fixed) * math.sqrt(max(shared, 1.0)) * UP


@dataclass
class Convolutions(Norms):
    """Norms of a convolution, of whatever stride, padding and dilation, or transposed.

    Attributes:
        kernel: Sides of the kernel.
        groups: Number of groups.
        stride: Strides, none where the kernel is dilated.
        transposed: Whether channels of the result are those of the kernel's second
            dimension.
    """

    kernel: tuple[int, ...]
    groups: int
    stride: tuple[int, ...] = ()
    transposed: bool = False

    @property
    def cross(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Each number is in as many sums as the kernel has places."""
        return math.sqrt(math.prod(self.kernel))

    def fixing(self, place: int, fixed: Tensor, free: torch.Size) -> float:
        """Return the norm with the image or the kernel fixed."""
        del free
        if place == 0:
            return self.cross * euclidean(fixed)
        return self._norm(fixed)

    def passes(self, weights: Tensor, shape: torch.Size, result: torch.Size) -> bool:
        """Return whether weights are those of samples."""
        return len(shape) == len(result) == weights.ndim and (
            weights.numel() == weights.shape[0]
        )

    def weighted(self, fixed: Tensor, weights: Tensor) -> Tensor | None:
        """Return the kernel, if weights are those of channels."""
        count = weights.numel()
        if self.transposed or weights.ndim < 2 or count != weights.shape[1]:
            return None
        return fixed * weights.reshape(-1, *[1] * (fixed.ndim - 1))

    def _norm(self, kernel: Tensor) -> float:
        r"""Return a bound of the largest singular value of the transformed kernel.

        It is at most $1/\cos(\pi d/n)$ times the largest on a grid of n frequencies,
        by each direction, for trigonometric polynomials of degree d.
        """
        parts = kernel.unflatten(0, (self.groups, -1))
        for at, step in enumerate(self.stride):
            # Each place of the result meets every step-th one of the image: these are
            # channels of a convolution without stride.
            sides = parts.shape[3 + at :]
            wide = [0] * (2 * len(sides) - 1) + [-sides[0] % step]
            parts = torch.nn.functional.pad(parts, wide)
            parts = parts.unflatten(3 + at, (-1, step)).movedim(4 + at, 2).flatten(2, 3)
        if max(parts.shape[1:3]) > _CHANNELS:
            places = math.sqrt(math.prod(parts.shape[3:]))
            return places * root_of_gram(parts.flatten(2)) * UP
        sizes = [4 * side if side > 1 else 1 for side in parts.shape[3:]]
        dims = tuple(range(3, parts.ndim))
        turned = torch.fft.rfftn(parts, s=sizes, dim=dims)
        slack = math.prod(
            math.cos(math.pi * (side - 1) / 2 / size)
            for side, size in zip(parts.shape[3:], sizes, strict=True)
        )
        return root_of_gram(turned.flatten(3).movedim(3, 0)) / slack * UP


def root_of_gram(matrices: Tensor) -> float:
    r"""Return a bound of the largest singular value of any matrix M of a batch.

    It is $\|(MM^*)^{64}\|_F^{1/128}$. Matrices that are below another one for certain
    are left out on the way there.
    """
    size = float(matrices.abs().max())
    if not 0 < size < math.inf:
        return 0.0 if size == 0 else math.inf
    wide = matrices.shape[-1] > matrices.shape[-2]
    m = (matrices if wide else matrices.mT.conj()) / size
    gram = (m @ m.mT.conj()).reshape(-1, m.shape[-2], m.shape[-2])
    log, rank = torch.zeros(len(gram), dtype=torch.float64, device="cpu"), len(gram[0])
    for power in range(7):
        norm = torch.linalg.vector_norm(gram, dim=(-2, -1)) + 1e-200
        log = 2 * log + norm.log()
        # A Frobenius norm is at most rank^1/2 times the largest singular value.
        keep = log >= log.max() - math.log(rank) / 2 - 1e-6
        log, gram = log[keep], gram[keep] / norm[keep, None, None]
        if power < 6:
            gram = gram @ gram
    # Rounding is relative to the norm of the whole, 1e-13 of one at most.
    return size * math.exp(float(log.max()) / 128) * UP

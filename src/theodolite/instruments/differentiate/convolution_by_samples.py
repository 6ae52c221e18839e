r"""Convolutions in float64 on a CPU, a few samples at a time.

oneDNN has none in float64. torch's own unfolds the input for all samples at once
(im2col): $k^2$ times the input, in newly allocated memory at every call. For a batch of
64 images of 28 by 28 with 16 channels that takes five times as long as the products
themselves. A few samples at a time stay in the processor's cache.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

# Bytes unfolded at once per thread. For narrow weights all sizes up to 4 MB were
# equally fast; with 256 channels, less than the weight itself took 1.6 times as long as
# all samples at once.
_AT_ONCE = 2**21


class Sliding(NamedTuple):
    """Stride, padding and so on of a convolution, in the order of torch's arguments."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    transposed: bool
    output_padding: list[int]
    groups: int


def convolved(x: Tensor, weight: Tensor, bias: Tensor | None, how: Sliding) -> Tensor:
    """Convolve a batch, in parts where that is faster."""
    count = samples_at_once(x, weight, how)
    if count >= x.shape[0]:
        return torch.convolution(x, weight, bias, *how)
    parts = x.split(count)
    return torch.cat([torch.convolution(part, weight, bias, *how) for part in parts])


def pulled_back(
    g: Tensor, x: Tensor, weight: Tensor, how: Sliding, wanted: Sequence[bool]
) -> Sequence[Tensor | None]:
    """Return the wanted cotangents of input, weight and bias."""
    count = samples_at_once(x, weight, how)
    if count >= x.shape[0]:
        return _pulled(g, x, weight, how, wanted)
    for_x: list[Tensor] = []
    totals: list[Tensor | None] = [None, None]
    for some, at in zip(g.split(count), x.split(count), strict=True):
        mine, *shared = _pulled(some, at, weight, how, wanted)
        for_x += [] if mine is None else [mine]
        totals = [_added(*pair) for pair in zip(totals, shared, strict=True)]
    return torch.cat(for_x) if wanted[0] else None, *totals


def samples_at_once(x: Tensor, weight: Tensor, how: Sliding) -> int:
    """Return how many samples of a batch are fastest to convolve together."""
    samples = max(1, x.shape[0])
    if x.device.type != "cpu" or x.dtype is not torch.float64:
        return samples
    # Dilated and transposed ones take one sample at a time anyway, and a kernel of size
    # one unfolds nothing.
    kernel, dilated = prod(weight.shape[2:]), any(step > 1 for step in how.dilation)
    if kernel == 1 or how.transposed or dilated:
        return samples
    places = prod(x.shape[2:]) // prod(how.stride)
    each = x.element_size() * kernel * places * weight.shape[1]
    # Every part reads the whole weight, and adds to its whole cotangent.
    wide = weight.numel() * weight.element_size()
    return torch.get_num_threads() * max(1, _AT_ONCE // each, wide // each)


def _pulled(
    g: Tensor, x: Tensor, weight: Tensor, how: Sliding, wanted: Sequence[bool]
) -> Sequence[Tensor | None]:
    bias = [g.shape[1]]
    return torch.ops.aten.convolution_backward(g, x, weight, bias, *how, list(wanted))


def _added(total: Tensor | None, part: Tensor | None) -> Tensor | None:
    return part if total is None or part is None else total.add_(part)

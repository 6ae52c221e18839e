r"""Convolutions in float64 on a processor, a few samples at a time.

oneDNN has none in float64, and torch's own lays out what each place of the output sees,
for all samples at once: $k^2$ times the input, in memory that is fresh at every call.
Of a batch of 64 images of 28 by 28 with 16 channels that takes five times as long as
the products themselves. A few samples at a time leave it in the processor's cache.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

# Bytes laid out at once for each thread: up to 4 MB all sizes were equally quick. Below
# 16 MB for all samples the allocator has the memory at hand, and little is won.
_AT_ONCE, _WORTH = 2**21, 2**24


class Sliding(NamedTuple):
    """How a convolution slides; in the order in which torch takes it."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    transposed: bool
    output_padding: list[int]
    groups: int


def convolved(x: Tensor, weight: Tensor, bias: Tensor | None, how: Sliding) -> Tensor:
    """Convolve a batch, in parts where that is quicker."""
    count = samples_at_once(x, weight, how)
    if count >= len(x):
        return torch.convolution(x, weight, bias, *how)
    parts = x.split(count)
    return torch.cat([torch.convolution(part, weight, bias, *how) for part in parts])


def pulled_back(
    g: Tensor, x: Tensor, weight: Tensor, how: Sliding, wanted: Sequence[bool]
) -> Sequence[Tensor | None]:
    """Return what is wanted of the cotangents of input, weight and bias."""
    count = samples_at_once(x, weight, how)
    if count >= len(x):
        return _pulled(g, x, weight, how, wanted)
    pairs = zip(g.split(count), x.split(count), strict=True)
    parts = [_pulled(some, at, weight, how, wanted) for some, at in pairs]
    for_x, *shared = zip(*parts, strict=True)
    joined = torch.cat(for_x) if wanted[0] else None
    return joined, *(_total(some) for some in shared)


def samples_at_once(x: Tensor, weight: Tensor, how: Sliding) -> int:
    """Return how many samples of a batch are best convolved together."""
    # Dilated and transposed ones take a sample at a time anyway, and a kernel of one
    # place lays nothing out.
    kernel, dilated = prod(weight.shape[2:]), any(step > 1 for step in how.dilation)
    laid_out = kernel > 1 and not (how.transposed or dilated)
    if not (laid_out and x.device.type == "cpu" and x.dtype is torch.float64):
        return max(1, len(x))
    places = prod(x.shape[2:]) // prod(how.stride)
    each = x.element_size() * kernel * places * weight.shape[1]
    if len(x) * each <= _WORTH:
        return max(1, len(x))
    return torch.get_num_threads() * max(1, _AT_ONCE // each)


def _pulled(
    g: Tensor, x: Tensor, weight: Tensor, how: Sliding, wanted: Sequence[bool]
) -> Sequence[Tensor | None]:
    bias = [g.shape[1]]
    return torch.ops.aten.convolution_backward(g, x, weight, bias, *how, list(wanted))


def _total(parts: Sequence[Any]) -> Tensor | None:
    return None if parts[0] is None else torch.stack(list(parts)).sum(0)

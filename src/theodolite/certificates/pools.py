"""Max pools along a segment."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .intervals import between
from .series import Series, late_rise, plus, unchanged


def max_pool(
    u: Series, kernel: Any, stride: Any = (), padding: Any = 0, *rest: Any
) -> tuple[Series, None]:
    """Return the series of a max pool; nothing is known of its indices."""
    if rest and (_pair(rest[0]) != (1, 1) or any(rest[1:])):
        raise KeyError("a max pool with dilation or ceil_mode")
    kernel, padding = _pair(kernel), _pair(padding)
    stride = _pair(stride) if stride else kernel
    shape = u.first.mid.shape
    flat = torch.arange(math.prod(shape[-2:]), dtype=torch.float64, device="cpu")
    place = flat.reshape(shape[-2:]).expand(shape)
    pooled, index = functional.max_pool2d(
        u.first.mid, kernel, stride, padding, return_indices=True
    )
    chosen = index.flatten(-2)
    winner = u.moved(
        lambda one: one.flatten(-2).gather(-1, chosen).reshape(pooled.shape)
    )
    others = []
    for row in range(kernel[0]):
        for column in range(kernel[1]):

            def shifted(
                one: Tensor, fill: float = 0.0, i: int = row, j: int = column
            ) -> Tensor:
                sides = (padding[1], padding[1], padding[0], padding[0])
                wide = functional.pad(one, sides, value=fill)
                rows = slice(i, i + stride[0] * pooled.shape[-2], stride[0])
                columns = slice(j, j + stride[1] * pooled.shape[-1], stride[1])
                return wide[..., rows, columns][
                    ..., : pooled.shape[-2], : pooled.shape[-1]
                ]

            where = shifted(place, -1.0)
            counts = (where >= 0) & (where != index.double())
            others.append((u.moved(shifted), counts))
    return maximum(winner, others), None


def _pair(given: Any) -> tuple[int, int]:
    values = tuple(given) if isinstance(given, Sequence) else (given,)
    return (values * 2)[:2] if len(values) == 1 else values[:2]  # type: ignore[return-value]


def maximum(winner: Series, others: Sequence[tuple[Series, Tensor]]) -> Series:
    """Return the series of the largest of several, given which is largest at 0.

    Args:
        winner: The largest at 0 by its midpoint, entry by entry.
        others: The rest, each with a mask of the entries where it counts.
    """
    zero = torch.zeros_like(winner.first.mid)
    value, rise, fall = zero, zero, zero
    for other, counts in others:
        ahead = other - winner
        upper = ahead.first.ends()[1]
        falls, climbs = ahead.slopes().ends()
        late = late_rise(climbs, -upper, winner.length)
        # Where it may be the largest at 0 already, all of its change counts.
        early = upper >= 0
        late = torch.where(early, climbs.clamp(min=0), late)
        falls = torch.where(early, falls.clamp(max=0), 0.0)
        value = torch.maximum(value, torch.where(counts, upper.clamp(min=0), 0.0))
        rise = torch.maximum(rise, torch.where(counts, late, 0.0))
        fall = torch.minimum(fall, torch.where(counts, falls, 0.0))
    first, slope, rest = winner.terms
    jump = between(fall, rise)
    terms = (first + between(zero, value), plus(slope, jump), rest)
    links = ((winner, unchanged),) if winner.bent else ()
    return Series(terms, winner.length, links, (jump, None))

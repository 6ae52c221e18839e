"""The identity between two shapes, or why there is none."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import ConfigError, SurgeryError
from theodolite.networks import AverageSkip, HaarSkip


class LastAxisSkip(nn.Module):
    """The identity where features on the last axis grow: zeros on both sides."""

    def __init__(self, features_in: int, features_out: int) -> None:
        super().__init__()
        extra = features_out - features_in
        self.before, self.after = extra // 2, extra - extra // 2

    def forward(self, x: Tensor) -> Tensor:
        """Pad a batch."""
        return functional.pad(x, (self.before, self.after))


def bridge(
    start: Sequence[int], end: Sequence[int], where: str, *, isometry: bool
) -> nn.Module:
    """Return the identity from one shape to another, both with samples first.

    Args:
        start: Shape that comes.
        end: Shape that is wanted.
        where: Which module it is for, in errors.
        isometry: Put details in place of zeros.

    Example:
        >>> bridge((2, 4, 8, 8), (2, 6, 4, 4), "module", isometry=False)
        AverageSkip(4, 6, stride=2)
    """
    if tuple(start) == tuple(end):
        return nn.Identity()
    if len(start) != len(end) or len(start) < 2 or start[0] != end[0]:
        raise _refused(start, end, where, "other axes")
    if len(start) > 2 and start[:-1] == end[:-1] and start[-1] < end[-1]:
        return LastAxisSkip(start[-1], end[-1])
    if end[1] < start[1]:
        raise _refused(start, end, where, "fewer channels")
    strides = {
        (a // b if b and a % b == 0 else 0)
        for a, b in zip(start[2:], end[2:], strict=True)
    } or {1}
    if len(strides) != 1 or 0 in strides:
        raise _refused(start, end, where, "sizes that no stride divides evenly")
    kind = HaarSkip if isometry else AverageSkip
    try:
        found = kind(start[1], end[1], strides.pop())
        found(torch.zeros(1, *start[1:]))
    except ConfigError as error:
        raise _refused(start, end, where, str(error)) from error
    return found


def _refused(
    start: Sequence[int], end: Sequence[int], where: str, why: str
) -> SurgeryError:
    return SurgeryError(
        f"the identity cannot bridge {tuple(start)} to {tuple(end)} in {where} ({why})"
        ", wanted are as many channels or more and sizes divided by one stride: leave "
        "this skip out by which=…, or pass images of an even size"
    )

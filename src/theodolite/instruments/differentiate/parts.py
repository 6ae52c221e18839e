"""Vectors in parts: one tensor a variable, in the variables' shapes."""

from collections.abc import Sequence

import torch
from torch import Tensor

Parts = list[Tensor]


def add(total: Parts, parts: Sequence[Tensor]) -> None:
    """Add in place, part by part."""
    for sum_, part in zip(total, parts, strict=True):
        sum_ += part


def zeros(like: Sequence[Tensor]) -> Parts:
    """Return parts of zeros in the shapes given."""
    return [torch.zeros_like(part, requires_grad=False) for part in like]


def filled(parts: Sequence[Tensor | None], variables: Sequence[Tensor]) -> Parts:
    """Return parts with zeros for None, which autograd gives for what plays no part."""
    return [
        torch.zeros_like(variable, requires_grad=False) if part is None else part
        for part, variable in zip(parts, variables, strict=True)
    ]


def flat(parts: Sequence[Tensor]) -> Tensor:
    """Join parts into one vector."""
    return torch.cat([part.detach().reshape(-1) for part in parts])

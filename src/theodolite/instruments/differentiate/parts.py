"""Vectors as lists of tensors, one per variable, in the variables' shapes."""

from collections.abc import Sequence

import torch
from torch import Tensor

Parts = list[Tensor]


def add(total: Parts, parts: Sequence[Tensor]) -> None:
    """Add in place, part by part."""
    torch._foreach_add_(  # pyright: ignore[reportPrivateImportUsage]
        total, list(parts)
    )


def added(total: Parts, parts: Sequence[Tensor], *, alone: bool) -> Parts:
    """Return a total, empty at first, with parts added; the parts stay unchanged.

    Args:
        total: The sum so far.
        parts: The next term.
        alone: Whether no other term comes, so that the first needs no copy.
    """
    if not total:
        return list(parts) if alone else [part.clone() for part in parts]
    add(total, parts)
    return total


def zeros(like: Sequence[Tensor]) -> Parts:
    """Return parts of zeros in the shapes given."""
    return [torch.zeros_like(part, requires_grad=False) for part in like]


def filled(parts: Sequence[Tensor | None], variables: Sequence[Tensor]) -> Parts:
    """Return parts with zeros for None, which autograd gives for unused variables."""
    return [
        torch.zeros_like(variable, requires_grad=False) if part is None else part
        for part, variable in zip(parts, variables, strict=True)
    ]


def flat(parts: Sequence[Tensor]) -> Tensor:
    """Join parts into one vector."""
    with torch._C.DisableTorchFunction():  # modes would be called for every part
        return torch.cat([part.detach().reshape(-1) for part in parts])

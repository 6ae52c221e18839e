"""Vectors as lists of tensors, one per variable, in the variables' shapes."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

Parts = list[Tensor]


def add(total: Parts, parts: Sequence[Tensor]) -> None:
    """Add in place, part by part."""
    torch._foreach_add_(  # pyright: ignore[reportPrivateImportUsage]
        total, list(parts)
    )


def summed(terms: Iterable[Sequence[Tensor]], like: Sequence[Tensor]) -> Parts:
    """Return the sum of terms, which stay unchanged; without terms, the given zeros."""
    total: Parts = []
    for count, parts in enumerate(terms):
        if count == 1:  # the first may belong to the caller
            total = [part.clone() for part in total]
        if count:
            add(total, parts)
        else:
            total = list(parts)
    return total or zeros(like)


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

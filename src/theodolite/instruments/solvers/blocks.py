"""Vectors that are multiplied at once, where that is quicker than one by one."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from theodolite.instruments.operators.operator import Operator


def strides(
    count: int, operator: Operator, *, at_most: int | None = None
) -> Iterator[range]:
    """Yield the places of as many vectors as are quicker to multiply at once.

    Args:
        count: Vectors in all.
        operator: What multiplies them.
        at_most: Vectors that there is room for at once.
    """
    width = operator.at_once if at_most is None else min(operator.at_once, at_most)
    for start in range(0, count, max(1, width)):
        yield range(start, min(start + max(1, width), count))


def products(operator: Operator, vectors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Multiply vectors; one alone takes no further memory."""
    if len(vectors) == 1:
        return [operator.matvec(vectors[0]).detach()]
    return operator.matvecs(torch.stack(list(vectors))).unbind()

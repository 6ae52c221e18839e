"""Batches that are read as several, and changed as they are read."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor

from theodolite.instruments import Batch, read_batches


class Several:
    """Batches that are read again and again, each changed by a function.

    A list of tensors would count as one batch.
    """

    def __init__(
        self, batches: Sequence[Batch], change: Callable[[Batch], Any]
    ) -> None:
        self._batches, self._change = batches, change

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Any]:
        return map(self._change, self._batches)


def kept_apart(batches: Sequence[Batch]) -> Sequence[Batch]:
    """Return batches as what is read as several, which lists of tensors are not."""
    if not isinstance(batches[0], Tensor):
        return list(batches)
    return read_batches(Several(batches, lambda batch: batch))

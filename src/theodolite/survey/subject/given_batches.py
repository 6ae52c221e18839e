"""Batches as people give them: several tensors without targets, labels by name."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.instruments import Batch, Loss, preserve, read_batches, run_model


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


def are_several(model: nn.Module, batches: Any, loss: Loss | str | None) -> bool:
    """Return whether a list of tensors is several batches: the model takes one of them.

    A list of tensors is read as one batch elsewhere, with several inputs.
    """
    if not isinstance(batches, list) or not batches:
        return False
    if not all(isinstance(t, Tensor) and t.ndim > 1 for t in batches):
        return False
    # Two of different kinds are inputs and targets, also where they do not fit.
    if len(batches) == 2 and len({(t.dtype, t.shape[1:]) for t in batches}) > 1:
        return False

    def runs(batch: Any) -> bool:
        try:
            with preserve(model), torch.no_grad():
                if loss is None or isinstance(loss, str):
                    run_model(model, batch)
                else:
                    loss(model, batch)
        except Exception:  # of foreign code
            return False
        return True

    return not runs(batches) and runs(batches[0])

"""The samples of all batches, drawn again in batches of any size."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from theodolite.core import stream
from theodolite.instruments import (
    Batch,
    join_batches,
    map_tensors,
    read_batches,
    samples_in,
)

# Number of batches read from a long stream: our choice.
MOST_BATCHES = 16


class Pool:
    """All samples of the given batches.

    Batches that cannot be joined, such as those of different lengths, are drawn whole.

    Args:
        batches: As the instruments take them.
    """

    def __init__(self, batches: Any) -> None:
        self.batches: list[Batch] = list(
            read_batches(batches, max_batches=MOST_BATCHES)
        )
        self.joined: Batch | None = join_batches(self.batches)
        self.size = samples_in(self.batches[0]) or 1

    def some_inputs(self) -> Any:
        """Return a copy of the inputs of the first batch."""
        batch = picked(self.batches[0], slice(None))
        paired = isinstance(batch, tuple | list) and len(batch) == 2
        return batch[0] if paired else batch

    def draws(self, seed: int, size: int | None) -> Iterator[Batch]:
        """Yield batches without end; equal seeds and sizes give equal batches."""
        rng = stream(seed, "trial")
        total = samples_in(self.joined) if self.joined is not None else None
        while True:
            if total is None:
                yield picked(self.batches[rng.integers(len(self.batches))], slice(None))
            else:
                order = torch.from_numpy(rng.permutation(total)[: size or self.size])
                yield picked(self.joined, order)


def picked(batch: Batch, index: Tensor | slice) -> Batch:
    """Return a copy of some samples of a batch."""

    def taken(tensor: Tensor) -> Tensor:
        chosen = index.to(tensor.device) if isinstance(index, Tensor) else index
        return (tensor[chosen] if tensor.ndim else tensor).clone()

    return map_tensors(batch, taken)

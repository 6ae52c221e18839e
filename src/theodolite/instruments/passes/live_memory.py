"""Count the tensors that are alive in a product, to forecast its peak."""

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from ..calls.listening import Listener
from .forecast import few_samples

# At its peak a product takes so many times the bytes of its tensors: it allows for
# temporary memory of kernels, and for fragmentation of the allocator.
_AROUND = 1.2


def live_bytes(work: Callable[[], object], known: Iterable[Tensor]) -> list[int]:
    """Return the bytes alive after each operator of some work, on any device.

    Temporary memory inside kernels is not counted.

    Args:
        work: Function to run.
        known: Tensors that exist anyway, such as parameters.

    Example:
        >>> x = torch.zeros(4)  # of 4 bytes each
        >>> live_bytes(lambda: (x + 1) + (x + 2), [x])
        [16, 32, 48]
    """
    with _Counted(known) as counted:
        work()
    return counted.after


class _Counted(Listener):
    def __init__(self, known: Iterable[Tensor]) -> None:
        self.after: list[int] = []
        self._live = 0
        self._storages = {tensor.untyped_storage()._cdata for tensor in known}

    def on_operator(self, operator: Any, args: Any, kwargs: Any) -> Any:
        result = operator(*args, **kwargs)
        for part in tree_leaves(result):
            if isinstance(part, Tensor) and part.layout is torch.strided:
                self._count(part)
        self.after.append(self._live)
        return result

    def _count(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        place, size = storage._cdata, storage.nbytes()
        if place in self._storages:
            return
        self._storages.add(place)
        self._live += size
        weakref.finalize(storage, self._free, place, size).atexit = False

    def _free(self, place: int, size: int) -> None:
        self._storages.discard(place)
        self._live -= size


def predict_peak(
    alive: Callable[[int], Sequence[int]], samples: int, *, at_most: int = 4
) -> int | None:
    """Extrapolate the peak of a product from few samples, operator by operator.

    Each is a constant plus a rate, since the largest of a few samples need not be the
    largest of all. None where the operators change with the samples.

    Args:
        alive: Bytes alive after each operator, for a given number of samples.
        samples: Number of samples to forecast for.
        at_most: Samples available for measuring.

    Example:
        >>> predict_peak(lambda n: [2000, 10 * n], 1000)
        12000
    """
    few, more = (1, 2) if samples < 3 <= at_most else few_samples(samples, at_most)
    if few == more:
        return None
    first, second = alive(few), alive(more)
    if len(first) != len(second):
        return None
    further = (samples - few) / (more - few)
    peak = max(a + (b - a) * further for a, b in zip(first, second, strict=True))
    return int(_AROUND * peak)

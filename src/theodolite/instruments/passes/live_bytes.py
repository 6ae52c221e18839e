"""How many bytes of tensors are alive, operator by operator."""

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def live_bytes(work: Callable[[], object], known: Iterable[Tensor]) -> list[int]:
    """Return the bytes alive after each operator of some work, on any device.

    What kernels take for themselves while they run is not seen.

    Args:
        work: What is done.
        known: Tensors that exist anyway, such as parameters.

    Example:
        >>> x = torch.zeros(4)  # of 4 bytes each
        >>> live_bytes(lambda: (x + 1) + (x + 2), [x])
        [16, 32, 48]
    """
    with _Counted(known) as counted:
        work()
    return counted.after


class _Counted(TorchDispatchMode):
    def __init__(self, known: Iterable[Tensor]) -> None:
        super().__init__()
        self.after: list[int] = []
        self._live = 0
        self._storages = {tensor.untyped_storage()._cdata for tensor in known}

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        for part in tree_leaves(found):
            if isinstance(part, Tensor) and part.layout is torch.strided:
                self._count(part)
        self.after.append(self._live)
        return found

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

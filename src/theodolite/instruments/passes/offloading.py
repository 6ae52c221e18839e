"""Graphs whose tensors lie on the host, and come to the device as they are wanted."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from theodolite.instruments.norms.shelf import Shelf

# Below this many bytes a tensor stays where it is: a transfer has a price of its own.
_SMALL = 2**16


@dataclass(frozen=True, eq=False)
class _Packed:
    kept: Tensor
    device: torch.device | None  # where it came from, None where it stayed
    version: int = 0  # of one that stayed

    def check(self) -> None:
        """Say what torch would, had it kept the tensor itself."""
        if self.kept._version != self.version:
            raise RuntimeError(
                f"a tensor of shape {tuple(self.kept.shape)} that a derivative needs "
                "has been modified by an inplace operation: replace it by one that "
                "returns a new tensor"
            )


@contextmanager
def offloaded(staying: Iterable[Tensor], *, small: int = _SMALL) -> Iterator[None]:
    """Have graphs that are built inside keep their tensors on the host.

    A tensor that several operators save is moved once. One that stays must not be
    written to, as torch has it without hooks.

    Args:
        staying: Tensors that exist anyway, such as parameters.
        small: Bytes below which tensors stay.
    """
    owned = {tensor.untyped_storage()._cdata for tensor in staying}
    shelf = Shelf(host=True)
    moved: dict[Any, tuple[StorageWeakRef, _Packed]] = {}

    def pack(tensor: Tensor) -> _Packed:
        storage = tensor.untyped_storage()
        size = tensor.numel() * tensor.element_size()
        if storage._cdata in owned or size < small:
            return _Packed(tensor.detach(), None, tensor._version)
        key = (
            storage._cdata,
            tensor.storage_offset(),
            tensor.shape,
            tensor.stride(),
            tensor.dtype,
            tensor._version,
        )
        if key not in moved or moved[key][0].expired():
            packed = _Packed(shelf.put(tensor), tensor.device)
            moved[key] = StorageWeakRef(storage), packed
        return moved[key][1]

    def unpack(packed: _Packed) -> Tensor:
        if packed.device is None:
            packed.check()
            return packed.kept
        return shelf.fetch(packed.kept, packed.device)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield

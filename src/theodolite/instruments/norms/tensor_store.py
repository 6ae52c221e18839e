"""Tensors kept on the device or on the host: those between norms, or whole graphs."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

# Below this many bytes a tensor stays where it is: a transfer has a fixed cost.
_SMALL = 2**16


@dataclass(frozen=True, eq=False)
class _Packed:
    kept: Tensor
    device: torch.device | None  # original device, None if it stayed
    version: int = 0  # version of a tensor that stayed

    def check(self) -> None:
        """Raise torch's error if the tensor was changed since."""
        if self.kept._version != self.version:
            raise RuntimeError(
                f"a tensor of shape {tuple(self.kept.shape)} that a derivative needs "
                "has been modified by an inplace operation: replace it by one that "
                "returns a new tensor"
            )


@contextmanager
def offloaded(staying: Iterable[Tensor], *, small: int = _SMALL) -> Iterator[None]:
    """Keep the saved tensors of graphs that are built inside on the host.

    A tensor that several operators save is moved once. One that stays must not be
    written to, as torch has it without hooks.

    Args:
        staying: Tensors that exist anyway, such as parameters.
        small: Bytes below which tensors stay.
    """
    owned = {tensor.untyped_storage()._cdata for tensor in staying}
    store = TensorStore(host=True)
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
            packed = _Packed(store.put(tensor), tensor.device)
            moved[key] = StorageWeakRef(storage), packed
        return moved[key][1]

    def unpack(packed: _Packed) -> Tensor:
        if packed.device is None:
            packed.check()
            return packed.kept
        return store.fetch(packed.kept, packed.device)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


class TensorStore:
    """Keeps tensors where they are, or on the host.

    Args:
        host: Whether to bring them to the host's memory, in pages that a GPU reads
            directly.
    """

    def __init__(self, *, host: bool = False) -> None:
        self.host = host

    def put(self, tensor: Tensor) -> Tensor:
        """Return the stored form of a tensor."""
        tensor = tensor.detach()
        if not self.host:
            return tensor
        pinned = tensor.device.type == "cuda"
        kept = torch.empty_like(tensor, device="cpu", pin_memory=pinned)
        return kept.copy_(tensor, non_blocking=pinned)

    def fetch(self, kept: Tensor, device: torch.device) -> Tensor:
        """Return a tensor on a device, from its stored form."""
        return kept.to(device, non_blocking=True) if self.host else kept

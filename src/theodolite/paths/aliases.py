"""Which number a tensor has, whatever object or view it comes as."""

from typing import Generic, TypeVar

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from theodolite.core import MeasurementError

Geometry = tuple[int, tuple[int, ...], tuple[int, ...]]
T = TypeVar("T")


class Aliases(Generic[T]):
    """Marks on tensors, by where in memory their values lie.

    Two tensors of one storage and geometry hold the same values, and so share a mark.
    A weak reference keeps the address of a storage from being given out again, and
    lets go of its memory. What is written in place takes a new mark, and other views of
    it lose theirs.
    """

    def __init__(self) -> None:
        self._marks: dict[int, tuple[StorageWeakRef, dict[Geometry, T]]] = {}

    def get(self, tensor: Tensor) -> T | None:
        """Return the mark of a tensor, or None.

        Raises:
            MeasurementError: Another view of its memory was written in place.
        """
        marks = self._of(tensor)
        if not marks:
            return None
        found = marks.get(_geometry(tensor))
        if found is None:
            raise MeasurementError(
                f"a tensor of shape {tuple(tensor.shape)} was changed in place through "
                "another view of it, which a path ensemble does not follow: write the "
                "change as a new tensor, for instance with torch.cat"
            )
        return found

    def put(self, tensor: Tensor, mark: T, *, written: bool) -> None:
        """Mark a tensor; forget the marks of other views if it was written to."""
        reference = StorageWeakRef(tensor.untyped_storage())
        _, marks = self._marks.setdefault(reference.cdata, (reference, {}))
        if written:
            marks.clear()
        marks[_geometry(tensor)] = mark

    def knows(self, tensor: Tensor) -> bool:
        """Say whether any part of a tensor's memory has a mark."""
        return bool(self._of(tensor))

    def _of(self, tensor: Tensor) -> dict[Geometry, T]:
        reference = StorageWeakRef(tensor.untyped_storage())
        return self._marks.get(reference.cdata, (reference, {}))[1]


def _geometry(tensor: Tensor) -> Geometry:
    return int(tensor.storage_offset()), tuple(tensor.shape), tuple(tensor.stride())

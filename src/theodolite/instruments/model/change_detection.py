"""Detects whether a model has changed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .reachable_state import ReachableState

# Size above which a tensor is checked on its own.
_SMALL = 2**16
# Types of attributes that a pass may depend on: modes, rates, names of choices.
_SETTINGS = frozenset({bool, int, float, complex, str})


class ChangeDetector:
    """Values, versions and settings of a whole model that its derivatives depend on.

    Values are compared too, since a write through ``.data`` leaves the version alone.

    Args:
        reach: State reachable from the model and the code that runs with it.
        others: Further tensors, such as data.
        spared: Modules whose buffers do not matter, such as norms that ignore their
            running statistics.
    """

    def __init__(
        self,
        reach: ReachableState,
        others: Iterable[Tensor] = (),
        spared: Iterable[nn.Module] = (),
    ) -> None:
        self._others = list(others)
        self._spared = {id(module) for module in spared}
        self._marks = self._look(reach)
        # Kept alive, so that code that reads them by address, as a recorded product,
        # stays valid even after they were replaced.
        self._storages = [
            value.untyped_storage()
            for value in self._held(reach)
            if isinstance(value, Tensor) and value.layout is torch.strided
        ]
        self._copies = [_copied(value) for value in _gathered(self._held(reach))]

    def matches(self, reach: ReachableState) -> bool:
        """Return whether nothing has changed since."""
        if self._look(reach) != self._marks:
            return False
        pairs = zip(_gathered(self._held(reach)), self._copies, strict=True)
        changed = [_differ(now, then) for now, then in pairs]
        gathered = [flag.to(changed[0].device) for flag in changed]
        return not changed or not bool(torch.stack(gathered).any())

    def _look(self, reach: ReachableState) -> list[Any]:
        marks: list[Any] = [
            value
            for module in reach.modules
            for value in vars(module).values()
            if type(value) in _SETTINGS
        ]
        for value in (*self._held(reach), *self._others):
            marks.append((id(value), *_version(value)))
        return marks

    def _held(self, reach: ReachableState) -> list[Tensor | np.ndarray]:
        spared = {
            id(buffer)
            for module in reach.modules
            if id(module) in self._spared
            for buffer in module._buffers.values()
        }
        registered = [
            tensor
            for module in reach.modules
            for tensor in (*module._parameters.values(), *module._buffers.values())
            if tensor is not None and id(tensor) not in spared
        ]
        plain = [tensor for tensor in reach.tensors if id(tensor) not in spared]
        whole = {id(value): value for value in (*registered, *plain, *reach.arrays)}
        return list(whole.values())


def _gathered(held: Sequence[Tensor | np.ndarray]) -> Iterator[Tensor | np.ndarray]:
    """Yield large tensors as they are and, on a GPU, small ones concatenated by dtype.

    On a GPU checking a small tensor takes as long as one kernel launch.
    """
    joined: dict[Any, list[Tensor]] = {}
    for value in held:
        if isinstance(value, np.ndarray) or value.device.type != "cuda":
            yield value
        elif value.numel() > _SMALL or value.layout is not torch.strided:
            yield value
        else:
            joined.setdefault((value.dtype, value.device), []).append(value.detach())
    for parts in joined.values():
        yield torch.cat([part.reshape(-1) for part in parts])


def dense_parts(tensor: Tensor) -> list[Tensor]:
    """Return the dense tensors that a tensor consists of: itself, unless it is sparse.

    Ragged (nested) tensors consist of one tensor per row.
    """
    tensor = tensor.detach()
    if tensor.is_nested:
        return list(tensor.unbind())
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [tensor]


def _version(value: Tensor | np.ndarray) -> tuple[int, ...]:
    if isinstance(value, np.ndarray):
        return 0, value.ctypes.data
    version = 0 if value.is_inference() else value._version
    return version, *(part.data_ptr() for part in dense_parts(value))


def _copied(value: Tensor | np.ndarray) -> Tensor | np.ndarray:
    return value.copy() if isinstance(value, np.ndarray) else value.detach().clone()


def _differ(now: Any, then: Any) -> Tensor:
    if isinstance(now, np.ndarray):
        return torch.tensor(not np.array_equal(now, then))
    pairs = zip(dense_parts(now), dense_parts(then), strict=True)
    differ = [(a != b).any() for a, b in pairs if not a.is_meta]
    return torch.stack(differ).any() if differ else torch.tensor(False)

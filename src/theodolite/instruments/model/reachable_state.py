"""State that code can reach, behind callables and on modules, and whether it changed.

A loss may hold a teacher in a closure, a default, a partial, a global name of its own
file, or as the owner of a method; a module may hide others in a list. And a module
keeps more on itself than parameters and buffers: flags, counters, caches, generators.
"""

import random
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakSet

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.parameter import is_lazy

from theodolite.core import Exclusive, MeasurementError

from ..calls.listening import unheard

Container = dict[Any, Any] | list[Any] | set[Any] | deque[Any]

_ATOMS = frozenset(
    {type(None), bool, int, float, complex, str, bytes, torch.Size, torch.dtype}
)
_PLAIN = frozenset({dict, OrderedDict, list, set})
_GENERATORS = (
    torch.Generator,
    np.random.Generator,
    np.random.RandomState,
    random.Random,
)
_CLOSED = (type, ModuleType, BuiltinFunctionType)
# How a value was reached: held by a module rather than by a callable; not inside a
# plain object. Objects are searched only if modules and callables hold them directly,
# since they may lead to everything, as a trainer does.
_OWNED, _OPEN = 1, 2


class ReachableState:
    """All state that can be reached from some roots.

    Args:
        roots: Modules, callables, or containers of them.

    Attributes:
        modules: Every module, in the order found.
        containers: Dicts, lists, sets and deques that modules keep, their
            ``__dict__`` among them, also in plain objects that they hold.
        tensors: Tensors in these.
        arrays: NumPy arrays in these.
        generators: Random generators in these.

    Example:
        >>> teacher = nn.Linear(1, 1)
        >>> ReachableState([lambda model, batch: teacher(batch)]).modules
        [Linear(in_features=1, out_features=1, bias=True)]
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        self.modules: list[nn.Module] = []
        self.containers: list[Container] = []
        self.tensors: list[Tensor] = []
        self.arrays: list[np.ndarray] = []
        self.generators: list[Any] = []
        self._seen: dict[int, tuple[int, Any]] = {}  # so that no address repeats
        self._work = [(root, _OPEN) for root in roots]
        while self._work:
            self._visit(*self._work.pop())
        del self._seen

    def _visit(self, value: Any, how: int) -> None:
        before, _ = self._seen.get(id(value), (0, None))
        if type(value) in _ATOMS or (
            id(value) in self._seen and how | before == before
        ):
            return
        self._seen[id(value)] = how | before, value
        owned = bool(how & _OWNED) and not before & _OWNED
        if isinstance(value, nn.Module):
            if not before:
                self._enter(value)
        elif isinstance(value, Tensor):
            self.tensors += [value] * owned
        elif isinstance(value, np.ndarray):
            self.arrays += [value] * owned
        elif isinstance(value, _GENERATORS):
            self.generators += [value] * owned
        elif isinstance(value, dict | list | set | deque):
            self.containers += [value] * owned
            self._push(value.values() if isinstance(value, dict) else value, how)
        elif isinstance(value, tuple | frozenset):
            self._push(value, how)
        elif isinstance(value, FunctionType | MethodType | partial):
            self._push(_behind(value), how & ~_OWNED)
        elif how & _OPEN and not isinstance(value, _CLOSED):
            self._push([getattr(value, "__dict__", None)], how & ~_OPEN)

    def _enter(self, module: nn.Module) -> None:
        self.modules.append(module)
        self._push([vars(module)], _OWNED | _OPEN)
        if "_modules" not in vars(module):  # as in scripted modules
            self._push(module.children(), _OWNED | _OPEN)

    def _push(self, values: Iterable[Any], how: int) -> None:
        for value in values:
            kind = type(value)
            if kind in _ATOMS:
                continue
            if how & _OWNED and kind in _PLAIN and not value:
                self.containers.append(value)  # as most of a module's hooks are
            else:
                self._work.append((value, how))


def _behind(given: Any) -> list[Any]:
    """Return the objects that a callable refers to.

    Of functions behind global names, only those of the same file count.
    """
    if isinstance(given, partial):
        return [given.func, given.args, given.keywords]
    if isinstance(given, MethodType):
        return [given.__self__, given.__func__]
    values = [given.__defaults__, given.__kwdefaults__]
    for cell in given.__closure__ or ():
        with suppress(ValueError):  # not assigned yet
            values.append(cell.cell_contents)
    scope, codes = given.__globals__, [given.__code__]
    while codes:
        code = codes.pop()
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
        for value in map(scope.get, code.co_names):
            function = isinstance(value, FunctionType)
            if not function or value.__globals__ is scope:
                values.append(value)
    return values


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
        return torch.tensor(not np.array_equal(now, then), device="cpu")
    pairs = zip(dense_parts(now), dense_parts(then), strict=True)
    differ = [(a != b).any() for a, b in pairs if not a.is_meta]
    return torch.stack(differ).any() if differ else torch.tensor(False, device="cpu")


def chosen_parameters(
    model: nn.Module, names: Sequence[str] | None
) -> dict[str, nn.Parameter]:
    """Return the parameters by name: all that require a gradient, or those named."""
    refuse_unready(model)
    # Tied parameters can be chosen by each of their names.
    known = dict(model.named_parameters(remove_duplicate=False))
    if names is None:
        known = dict(model.named_parameters())
        with Exclusive():  # another thread that has it open sets these flags
            chosen = {name: p for name, p in known.items() if p.requires_grad}
        if not chosen:
            raise MeasurementError(
                f"{type(model).__name__} has no parameters that require a gradient: "
                "pass a module with weights, or unfreeze some"
            )
        return chosen
    missing = [name for name in names if name not in known]
    if missing or not names:
        raise MeasurementError(
            f"parameters {missing or 'none'} asked for, but the model has "
            f"{', '.join(list(known)[:8])}{'…' if len(known) > 8 else ''}: name those"
        )
    chosen = {name: known[name] for name in names}
    if len({id(parameter) for parameter in chosen.values()}) < len(names):
        raise MeasurementError(
            f"parameters {', '.join(names)} hold one twice, by the same or by another "
            "name: name each once"
        )
    return chosen


def refuse_unready(model: nn.Module) -> None:
    """Refuse lazy layers that have no shape yet, and weights that have no gradient."""
    for name, given in (*model.named_parameters(), *model.named_buffers()):
        if is_lazy(given):
            raise MeasurementError(
                f"{name!r} has no shape before a first batch, since its layer is lazy: "
                "run the model on a batch once, then measure it"
            )
        if isinstance(given, nn.Parameter) and given.is_inference():
            raise MeasurementError(
                f"{name!r} was made under torch.inference_mode, and has no gradient "
                "ever: make the model outside of it"
            )


# Models that left their inputs alone in a pass, so that none of them is copied again.
_READS_ONLY: WeakSet[nn.Module] = WeakSet()


@contextmanager
def only_read(model: nn.Module, inputs: Iterable[Tensor]) -> Iterator[None]:
    """Refuse code that writes to inputs, and put back what was there."""
    with unheard():
        given = [t for t in inputs if not t.is_inference()]
        versions = [t._version for t in given]
        copies = [] if model in _READS_ONLY else [t.detach().clone() for t in given]
    try:
        yield
    finally:
        with unheard():
            if written := [t._version for t in given] != versions:
                with torch.no_grad():
                    for tensor, copy in zip(given, copies, strict=False):
                        tensor.copy_(copy)
    if written:
        raise MeasurementError(
            "the model writes to its inputs, so that the next pass gets others: begin "
            "forward with x = x.clone(), or take inplace=True from the first layer"
        )
    _READS_ONLY.add(model)


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the original of a compiled or ``DistributedDataParallel`` model."""
    model = getattr(model, "_orig_mod", model)
    spread = isinstance(model, nn.parallel.DistributedDataParallel)
    return model.module if spread else model


Norm = _BatchNorm | _InstanceNorm


def norm_layers(model: nn.Module) -> list[Norm]:
    """List the layers whose statistics depend on the mode."""
    return [m for m in model.modules() if isinstance(m, _BatchNorm | _InstanceNorm)]

"""State that code can reach: modules behind callables, and attributes of modules.

A loss may hold a teacher in a closure, a default, a partial, a global name of its own
file, or as the owner of a method; a module may hide others in a list. And a module
keeps more on itself than parameters and buffers: flags, counters, caches, generators.
"""

import random
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

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


def _behind(given: Any) -> Iterator[Any]:
    """Yield the objects that a callable refers to."""
    if isinstance(given, partial):
        yield from (given.func, given.args, given.keywords)
    elif isinstance(given, MethodType):
        yield from (given.__self__, given.__func__)
    else:
        yield from (given.__defaults__, given.__kwdefaults__)
        for cell in given.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        yield from _globals(given)


def _globals(function: FunctionType) -> Iterator[Any]:
    """Yield values of global names; for functions only those of the same file."""
    scope = function.__globals__
    for name in _names(function.__code__):
        value = scope.get(name)
        if isinstance(value, FunctionType) and value.__globals__ is not scope:
            continue
        yield value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)

"""What a user's own training step holds, so that its effects can be undone."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader, Dataset

_ATOMS = (type(None), bool, int, float, complex, str, bytes, range)
# Data are read, not changed; libraries are not part of a step.
_CLOSED = (ModuleType, BuiltinFunctionType, DataLoader, Dataset)
# Tensors and arrays are saved by their values.
_VALUES = (Tensor, np.ndarray, np.random.Generator, np.random.RandomState)
# Containers and tensors with more entries are data, of which a container gets its
# entries back, but not what they hold: our choice.
_LONG, _LARGE = 2**12, 2**26
# Objects inside of objects that are followed, as a trainer holds an optimiser.
_DEEP = 4


class StepState:
    """All that a step can change besides the model: optimisers, schedules, counters.

    Args:
        step: The user's step, or None.

    Attributes:
        objects: Modules, optimisers, containers, tensors and other objects that it
            reaches.
        optimizers: The optimisers among them.
        schedulers: The schedules among them.
        scaled: Whether there is a gradient scaler that is switched on.
    """

    def __init__(self, step: Callable[..., Any] | None) -> None:
        self.objects: list[Any] = []
        self._cells: list[tuple[Any, Any]] = []
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        self._attributes: list[tuple[Any, str, Any]] = []
        self._long: list[tuple[Any, Any]] = []
        self._files = set[str]()  # modules in which the step's functions are
        self._seen: dict[int, Any] = {}
        self._visit(step, _DEEP)
        self.optimizers = [o for o in self.objects if isinstance(o, Optimizer)]
        self.schedulers = [o for o in self.objects if isinstance(o, LRScheduler)]
        self.scaled = any(
            o.is_enabled() for o in self.objects if isinstance(o, GradScaler)
        )

    def _visit(self, value: Any, depth: int) -> None:
        if isinstance(value, (*_ATOMS, *_CLOSED)) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, FunctionType):
            self._function(value, depth)
        elif isinstance(value, type):
            if value.__module__ in self._files:
                plain = [n for n, v in vars(value).items() if not _is_fixed(n, v)]
                self._attributes_of(value, plain, depth)
        elif isinstance(value, _VALUES):
            tensor = isinstance(value, Tensor)
            size = value.numel() if tensor else getattr(value, "size", 1)
            self.objects += [value] * (size <= _LARGE)
        elif isinstance(value, MethodType):
            owner = value.__self__
            self._all([value.__func__, type(owner), owner], depth)
        elif isinstance(value, partial):
            self._all([value.func, *value.args, *value.keywords.values()], depth)
        elif isinstance(value, dict | list | set | deque | tuple):
            if len(value) <= _LONG:
                self.objects += [value] * (not isinstance(value, tuple))
                self._all(value.values() if isinstance(value, dict) else value, depth)
            elif not isinstance(value, tuple):
                saved = dict(value) if isinstance(value, dict) else list(value)
                self._long.append((value, saved))
        elif isinstance(value, nn.Module):
            self.objects.append(value)
        else:
            if hasattr(value, "__dict__"):
                self.objects.append(value)
                if depth:
                    self._all(vars(value).values(), depth - 1)
            for kind in type(value).__mro__:
                slots = vars(kind).get("__slots__", ())
                names = [slots] if isinstance(slots, str) else slots
                self._attributes_of(value, names, depth)

    def _attributes_of(self, owner: Any, names: Iterable[str], depth: int) -> None:
        held = [(name, getattr(owner, name)) for name in names if hasattr(owner, name)]
        self._attributes += [(owner, *each) for each in held]
        if depth:
            self._all([value for _, value in held], depth - 1)

    def _all(self, values: Any, depth: int) -> None:
        for value in list(values):
            self._visit(value, depth)

    def _function(self, function: FunctionType, depth: int) -> None:
        self._files.add(function.__module__)
        given = [function.__defaults__, function.__kwdefaults__, vars(function)]
        self._all(given, depth)
        for cell in function.__closure__ or ():
            try:
                self._cells.append((cell, cell.cell_contents))
            except ValueError:  # not assigned yet
                continue
            self._visit(cell.cell_contents, depth)
        scope, codes = function.__globals__, [function.__code__]
        while codes:
            code = codes.pop()
            codes += [part for part in code.co_consts if isinstance(part, CodeType)]
            for name in code.co_names:
                if name in scope and not isinstance(scope[name], _CLOSED):
                    value = scope[name]
                    other = getattr(value, "__globals__", scope) is not scope
                    self._names.append((scope, name, value))
                    if not (isinstance(value, FunctionType) and other):
                        self._visit(value, depth)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Bind the names that the step may rebind to their values again on exit."""
        try:
            yield
        finally:
            for cell, value in self._cells:
                cell.cell_contents = value
            for scope, name, value in self._names:
                if scope.get(name) is not value:
                    scope[name] = value
            for owner, name, value in self._attributes:
                if getattr(owner, name, None) is not value:
                    setattr(owner, name, value)
            for container, saved in self._long:
                container.clear()
                ordered = isinstance(container, list | deque)
                (container.extend if ordered else container.update)(saved)

    def scale_rates(self, optimizers: list[Optimizer], factor: float) -> None:
        """Multiply the rates of optimisers and of the schedules that set them."""
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                for key in ("lr", "initial_lr", "max_lr", "min_lr"):
                    if isinstance(group.get(key), float | int | Tensor):
                        group[key] = group[key] * factor
        for schedule in self.schedulers:
            if hasattr(schedule, "base_lrs"):  # else it runs others, which are here too
                schedule.base_lrs = [rate * factor for rate in schedule.base_lrs]


def _is_fixed(name: str, value: Any) -> bool:
    """Return whether an entry of a class is a part of its code."""
    methods = FunctionType, property, staticmethod, classmethod, MemberDescriptorType
    return name.startswith("__") or isinstance(value, methods)

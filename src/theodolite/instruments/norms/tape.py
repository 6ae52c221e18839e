"""A pass of a model as a list of calls that can be repeated, from any norm on.

The part of a forward pass between two batch norms cannot run on its own, since Python
cannot re-enter the middle of a function. So one pass is recorded, call by call of
torch, and the calls are kept with the slots of their tensors. Custom autograd functions
are one call each and keep their own derivatives.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from ..calls.listening import Listener
from ..differentiate.batch_norm_twice import NormCall
from ..differentiate.twice import REPLACED, BatchNormCalls
from .value_sizes import bounds, sizing

# Calls that turn values into Python objects, on which a code path may depend.
_READS = frozenset(
    "__bool__ __float__ __int__ __index__ __complex__ __array__ __contains__ item "
    "tolist numpy is_nonzero equal allclose".split()
)
# Devices with autocast.
_CASTING = ("cpu", "cuda")
# Kinds of functions that call no other torch function through Python.
_BUILT_IN = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)


class NotOnTape(Exception):
    """Raised if a pass does something that a list of calls cannot repeat."""


@dataclass(frozen=True)
class Place:
    """Marks a tensor among the arguments of a call."""

    slot: int


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a function of torch.

    Attributes:
        function: The function.
        arguments: Arguments, with a ``Place`` for each tensor.
        names: Names of the last of them.
        layout: How the arguments are nested and named, if tensors are inside others;
            the arguments are flat then.
        results: Slot of each flat result, None if it is not a tensor.
        moves: Slots before and after of tensors that the call writes to.
        graded: Whether grad mode was on.
        watched: Whether modes that replace operators must see it.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    names: tuple[str, ...]
    layout: Any
    results: tuple[int | None, ...]
    moves: tuple[tuple[int, int], ...]
    graded: bool
    watched: bool

    @property
    def reads(self) -> list[int]:
        """Slots of its arguments."""
        return [entry.slot for entry in self.arguments if type(entry) is Place]

    def repeat(self, values: dict[int, Tensor]) -> None:
        """Repeat the call on other values, and store its results among them."""
        flat = [values[a.slot] if type(a) is Place else a for a in self.arguments]
        if self.layout is None:
            first = len(flat) - len(self.names)
            named = dict(zip(self.names, flat[first:], strict=True))
            out = self.function(*flat[:first], **named)
        else:
            args, kwargs = pytree.tree_unflatten(flat, self.layout)
            out = self.function(*args, **kwargs)
        results = [out] if isinstance(out, Tensor) else pytree.tree_leaves(out)
        for before, after in self.moves:
            if before in values:  # else no call after the last norm reads it
                values[after] = values[before]
        for slot, result in zip(self.results, results, strict=True):
            if slot is not None:
                values[slot] = result


@dataclass(frozen=True, kw_only=True)
class NormOnTape:
    """A call of batch norm with batch statistics: slots of its tensors."""

    x: int
    weight: int | None
    bias: int | None
    eps: float
    out: int


@dataclass(kw_only=True)
class Tape:
    """All calls of one pass, in order.

    Attributes:
        calls: Calls between norms, one list before each norm and one after the last.
        norms: The norms in between.
        constants: Tensors from outside by slot: parameters, buffers, others.
        inputs: Index of a data tensor by slot.
        active: Slots that depend on the chosen parameters.
        bytes: Size of each slot.
        value: Slot of the returned value.
    """

    calls: list[list[Call]] = field(default_factory=lambda: [[]])
    norms: list[NormOnTape] = field(default_factory=list)
    constants: dict[int, Tensor] = field(default_factory=dict)
    inputs: dict[int, int] = field(default_factory=dict)
    active: set[int] = field(default_factory=set)
    bytes: dict[int, int] = field(default_factory=dict)
    value: int = -1

    @property
    def outside(self) -> frozenset[int]:
        """Slots that no call fills."""
        return frozenset([*self.constants, *self.inputs])


def record(run: Callable[[], Tensor], inputs: Sequence[Tensor]) -> Tape:
    """Run a model once, each norm with its own statistics, and return the tape.

    Args:
        run: Makes the pass.
        inputs: Tensors of the data that it takes.

    Raises:
        NotOnTape: If the pass cannot be made again from its calls.
    """
    recorder = _Recorder(inputs)
    with recorder, BatchNormCalls(recorder.norm):
        value = run()
    return recorder.finished(value)


class _Recorder(Listener):
    def __init__(self, inputs: Sequence[Tensor]) -> None:
        self._tape = Tape()
        self._alive: list[Tensor] = []  # kept alive, so that no id is reused
        self._slots: dict[int, int] = {}
        self._shared: dict[int, list[Tensor]] = {}  # tensors by their storage
        self._read: set[int] = set()  # slots that calls on the tape read
        self._spoilt: set[int] = set()  # storages written to by calls left out
        self._after: set[int] = set()  # values that statistics act on
        self._inside = False
        for place, tensor in enumerate(inputs):
            self._tape.inputs[self._enter(tensor)] = place

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Make a call, and record it unless it is part of another."""
        if self._inside:
            return function(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            flat, layout = pytree.tree_flatten((tuple(args), dict(kwargs)))
            tensors = [entry for entry in flat if isinstance(entry, Tensor)]
            plain = [*args, *kwargs.values()]
            if len(tensors) == sum(isinstance(entry, Tensor) for entry in plain):
                flat, layout = plain, None
            versions = [tensor._version for tensor in tensors]
        self._inside = True
        try:
            out = function(*args, **kwargs)
        finally:
            self._inside = False
        with torch._C.DisableTorchFunction():
            written = [
                tensor
                for tensor, version in zip(tensors, versions, strict=True)
                if tensor._version != version
            ]
            self._write(function, flat, (tuple(kwargs), layout), out, written)
        return out

    def on_autograd_function(self, apply: Any, args: Any, kwargs: Any) -> Any:
        """Record an autograd function as one call."""
        return self.on_function(apply, args, kwargs)

    def norm(self, call: NormCall) -> Tensor:
        """Record a norm, and continue the pass."""
        if self._inside:
            raise NotOnTape("a norm is a part of another call")
        self._inside = True
        try:
            out = call.by_own()
        finally:
            self._inside = False
        with torch._C.DisableTorchFunction():
            given = [call.x, call.weight, call.bias]
            slots = [None if t is None else self._slot(t) for t in given]
            x, weight, bias = slots
            self._tape.norms.append(
                NormOnTape(
                    x=x or 0,
                    weight=weight,
                    bias=bias,
                    eps=call.eps,
                    out=self._enter(out),
                )
            )
            self._after.add(self._tape.norms[-1].out)
            self._tape.calls.append([])
        return out

    def finished(self, value: Tensor) -> Tape:
        """Return the tape of a pass that returned a value."""
        if id(value) not in self._slots:
            raise NotOnTape("what the pass returned comes from elsewhere")
        self._tape.value = self._slots[id(value)]
        return self._tape

    def _write(
        self, function: Any, flat: Any, shape: Any, out: Any, written: list[Tensor]
    ) -> None:
        results = pytree.tree_leaves(out)
        made = [entry for entry in results if isinstance(entry, Tensor)]
        name = getattr(function, "__name__", "")
        if name == "__set__" or any(map(torch.is_autocast_enabled, _CASTING)):
            raise NotOnTape("it sets attributes of tensors, or casts by itself")
        if any(isinstance(bound, Tensor) for bound in bounds(flat)):
            raise NotOnTape("it cuts a tensor where another one says")
        if not made and not written:
            self._refuse_reading(name, flat)
            return
        if self._leaves_out(written, made):
            return
        arguments = tuple(
            Place(self._slot(entry)) if isinstance(entry, Tensor) else entry
            for entry in flat
        )
        reads = [entry.slot for entry in arguments if type(entry) is Place]
        if self._after.intersection(self._slot(t) for t in sizing(name, flat)):
            raise NotOnTape("sizes of tensors depend on what statistics act on")
        self._read.update(reads)
        moves = self._moved(written)
        slots = tuple(
            self._result(entry) if isinstance(entry, Tensor) else None
            for entry in results
        )
        if self._after.intersection(reads):
            self._after.update(slot for slot in slots if slot is not None)
            self._after.update(after for _, after in moves)
        self._tape.calls[-1].append(
            Call(
                function=function,
                arguments=arguments,
                names=shape[0],
                layout=shape[1],
                results=slots,
                moves=moves,
                graded=torch.is_grad_enabled(),
                watched=function in REPLACED or not isinstance(function, _BUILT_IN),
            )
        )

    def _refuse_reading(self, name: str, flat: Sequence[Any]) -> None:
        if name not in _READS:
            return
        slots = {self._slots.get(id(e)) for e in flat if isinstance(e, Tensor)}
        if slots & self._after:
            raise NotOnTape("its path may depend on what statistics act on")

    def _leaves_out(self, written: list[Tensor], made: list[Tensor]) -> bool:
        """Return whether a call only writes to buffers; if so, mark those."""
        slots = {self._entered(tensor): tensor for tensor in written}
        outside = slots.keys() & self._tape.outside
        if not outside:
            return False
        parameters = any(tensor.requires_grad for tensor in written)
        if parameters or outside < slots.keys() or outside & self._tape.inputs.keys():
            raise NotOnTape("it writes to parameters, or to the data")
        if {id(tensor) for tensor in made} - {id(tensor) for tensor in written}:
            raise NotOnTape("a call writes to a buffer and returns something new")
        storages = [tensor.untyped_storage()._cdata for tensor in written]
        sharing = [t for storage in storages for t in self._shared[storage]]
        if self._read.intersection(self._slots[id(tensor)] for tensor in sharing):
            raise NotOnTape("it writes to a buffer that it has read")
        self._spoilt.update(storages)
        return True

    def _moved(self, written: list[Tensor]) -> tuple[tuple[int, int], ...]:
        """Give new slots to all tensors that share memory with those written to."""
        storages = {tensor.untyped_storage()._cdata for tensor in written}
        moves = []
        for storage in storages:
            for tensor in self._shared.get(storage, []):
                before = self._slots[id(tensor)]
                if before in self._tape.outside:
                    raise NotOnTape("it writes to a view of a buffer")
                moves.append((before, self._enter(tensor, known=True)))
        return tuple(moves)

    def _result(self, tensor: Tensor) -> int:
        slot = self._slots.get(id(tensor))
        return self._enter(tensor) if slot is None else slot

    def _slot(self, tensor: Tensor) -> int:
        """Return the slot of a tensor that a call reads."""
        slot = self._entered(tensor)
        if tensor.untyped_storage()._cdata in self._spoilt:
            raise NotOnTape("it reads a buffer that it has written to")
        return slot

    def _entered(self, tensor: Tensor) -> int:
        """Return a tensor's slot; an unknown tensor comes from outside."""
        slot = self._slots.get(id(tensor))
        if slot is None:
            if tensor.grad_fn is not None:
                raise NotOnTape("a tensor was computed unseen")
            slot = self._enter(tensor)
            self._tape.constants[slot] = tensor
        return slot

    def _enter(self, tensor: Tensor, *, known: bool = False) -> int:
        """Give a tensor a new slot."""
        slot = self._slots[id(tensor)] = len(self._tape.bytes)
        self._tape.bytes[slot] = tensor.numel() * tensor.element_size()
        if tensor.requires_grad:
            self._tape.active.add(slot)
        if not known:
            self._alive.append(tensor)
            storage = tensor.untyped_storage()._cdata
            self._shared.setdefault(storage, []).append(tensor)
        return slot

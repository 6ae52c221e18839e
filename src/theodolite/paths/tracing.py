"""Run a model once, and record every call as an affine step."""

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves

from theodolite.core import MeasurementError
from theodolite.instruments import Listener

from .rules import gates, linear
from .rules.call import Call, Frozen, LinearPiece, RuleResult, Slot, bind, slots_in
from .tape import SILENT, Step, Summed, Tape

Geometry = tuple[int, tuple[int, ...], tuple[int, ...]]
T = TypeVar("T")


class Aliases(Generic[T]):
    """Marks on tensors, looked up by the memory of a tensor.

    Two tensors of one storage and geometry hold the same values, and so share a mark.
    A weak reference keeps the address of a storage from being reused, but frees its
    memory. A tensor that is written in place gets a new mark, and other views of it
    lose theirs.
    """

    def __init__(self) -> None:
        self._marks: dict[int, tuple[StorageWeakRef, dict[Geometry, T]]] = {}

    def get(self, tensor: Tensor) -> T | None:
        """Return the mark of a tensor, or None.

        A tensor is refused if another view of its memory was written in place.
        """
        marks = self._of(tensor)
        if not marks:
            return None
        mark = marks.get(_geometry(tensor))
        if mark is None:
            raise MeasurementError(
                f"a tensor of shape {tuple(tensor.shape)} was changed in place through "
                "another view of it, which a path ensemble does not follow: write the "
                "change as a new tensor, for instance with torch.cat"
            )
        return mark

    def put(self, tensor: Tensor, mark: T, *, written: bool) -> None:
        """Mark a tensor; forget the marks of other views if it was written to."""
        reference = StorageWeakRef(tensor.untyped_storage())
        _, marks = self._marks.setdefault(reference.cdata, (reference, {}))
        if written:
            marks.clear()
        marks[_geometry(tensor)] = mark

    def knows(self, tensor: Tensor) -> bool:
        """Return whether any part of a tensor's memory has a mark."""
        return bool(self._of(tensor))

    def _of(self, tensor: Tensor) -> dict[Geometry, T]:
        reference = StorageWeakRef(tensor.untyped_storage())
        return self._marks.get(reference.cdata, (reference, {}))[1]


def _geometry(tensor: Tensor) -> Geometry:
    return int(tensor.storage_offset()), tuple(tensor.shape), tuple(tensor.stride())


_RULES = {**gates.SMOOTH_RULES, **linear.NORM_RULES, **gates.RULES, **linear.RULES}
# Calls in which a smaller frozen factor is the statistic of a norm.
_RESCALING = frozenset(("mul", "div"))
_MIXING = frozenset((*linear.PRODUCTS, "convolution")) - {"mul", "addcmul"}


class Tracer(Listener):
    """Records, as affine steps, the calls of a pass that depend on the inputs.

    Calls are numbered from 0 in order, except those that only return their argument.
    With ``linearise``, smooth gates and attention weights are frozen instead of
    refused.
    """

    def __init__(self, *, linearise: bool = False) -> None:
        self._linearise = linearise
        self._marks: Aliases[int | Frozen] = Aliases()
        self._steps: list[Step] = []
        self._sources: dict[int, Tensor] = {}
        self._inputs: list[int] = []
        self._gated: set[int] = set()
        self._linearised: dict[str, None] = {}
        self._eps = 0.0
        self._count = self._calls = 0

    def follow(self, inputs: Any) -> None:
        """Take the tensors of real numbers in a model's inputs as sources."""
        for leaf in tree_leaves(inputs):
            if isinstance(leaf, Tensor) and leaf.is_floating_point():
                self._inputs.append(self._source(leaf))

    def tape(self, output: Tensor) -> Tape:
        """Return the recorded steps up to an output."""
        mark = self._marks.get(output)
        if isinstance(mark, Frozen):
            self._refuse(mark)
        if mark is None:
            raise MeasurementError(
                "the output depends on no input or embedding by paths that can be "
                "followed: pass outputs=…, which picks a tensor that does"
            )
        return Tape(
            steps=tuple(self._steps),
            sources=self._sources,
            inputs=tuple(self._inputs),
            output=mark,
            value=output,
            calls=self._calls,
            linearised=tuple(self._linearised),
            eps=self._eps,
        ).needed()

    def on_operator(self, operator: Any, args: Any, kwargs: Any) -> Any:
        """Run a call, and record what it did to tracked tensors."""
        name = operator._schema.name.partition("::")[2]
        index, self._calls = self._calls, self._calls + (name not in SILENT)
        arguments = bind(operator, tuple(args), kwargs)
        written = [
            argument.name
            for argument in operator._schema.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        tensors = dict(slots_in(arguments))
        marks = {slot: self._marks.get(t) for slot, t in tensors.items()}
        followed = any(mark is not None for mark in marks.values())
        squares = _squares(operator, tensors, marks) if followed else ()
        if followed:
            for slot in ((target, None) for target in written):
                if slot in tensors:
                    tensors[slot] = tensors[slot].clone()
        result = operator(*args, **kwargs)
        if followed:
            call = self._call(operator, name, arguments, tensors, marks, result)
            outcomes = self._apply_rule(call, marks)
            self._write(index, call, marks, outcomes, bool(written), squares)
        elif name in ("embedding", "_embedding_bag"):
            self._source(tree_leaves(result)[0])
        return result

    def _call(
        self,
        func: Any,
        name: str,
        arguments: dict[str, Any],
        tensors: dict[Slot, Tensor],
        marks: dict[Slot, int | Frozen | None],
        result: Any,
    ) -> Call:
        live = tuple(slot for slot, mark in marks.items() if isinstance(mark, int))
        several = isinstance(result, list | tuple)
        return Call(
            func=_functional(func),
            name=name.removesuffix("_") if _writes(func) else name,
            arguments={
                **arguments,
                **{n: t for (n, i), t in tensors.items() if i is None},
            },
            tensors=tensors,
            live=live,
            gated=tuple(slot for slot in live if marks[slot] in self._gated),
            outputs=list(result) if several else [result],
            several=several,
            linearise=self._linearise,
        )

    def _apply_rule(
        self, call: Call, marks: dict[Slot, int | Frozen | None]
    ) -> list[RuleResult]:
        """Return what happens to each output."""
        frozen = {s: mark for s, mark in marks.items() if isinstance(mark, Frozen)}
        if not call.live:
            first = next(iter(frozen.values()))
            plain = call.name not in gates.SMOOTH_RULES or call.name in gates.STATISTICS
            kept = all(mark.statistic for mark in frozen.values()) and plain
            return [Frozen(first.op, kept) for _ in call.outputs]
        for slot, mark in frozen.items():
            self._admit(call, slot, mark)
        rule: Callable[[Call], list[RuleResult]] | None = _RULES.get(call.name)
        if rule is None:
            return [Frozen(call.name, False) for _ in call.outputs]
        return rule(call)

    def _admit(self, call: Call, slot: Slot, mark: Frozen) -> None:
        """Accept a frozen tensor as a constant: a statistic, or with ``linearise``."""
        largest = max(call.tensors[s].numel() for s in call.live)
        small = call.tensors[slot].numel() < largest
        if mark.statistic and small and call.name in _RESCALING:
            return
        if not self._linearise:
            self._refuse(mark)
        self._linearised[mark.op] = None

    def _write(
        self,
        index: int,
        call: Call,
        marks: dict[Slot, int | Frozen | None],
        outcomes: list[RuleResult],
        written: bool,
        squares: tuple[float, ...],
    ) -> None:
        for output, outcome in zip(call.outputs, outcomes, strict=False):
            if not isinstance(output, Tensor) or not output.is_floating_point():
                continue
            self._eps = max(self._eps, torch.finfo(output.dtype).eps)
            if outcome is None:
                continue
            if isinstance(outcome, Frozen):
                self._marks.put(output, outcome, written=written)
                continue
            self._step(index, call, marks, outcome, output, written, squares)

    def _step(
        self,
        index: int,
        call: Call,
        marks: dict[Slot, int | Frozen | None],
        piece: LinearPiece,
        output: Tensor,
        written: bool,
        squares: tuple[float, ...],
    ) -> None:
        number, self._count = self._count, self._count + 1
        names = [argument.name for argument in call.func._schema.arguments]
        frozen = any(isinstance(mark, Frozen) for mark in marks.values())
        inputs = tuple(m for s in piece.slots if isinstance(m := marks[s], int))
        if piece.gated and call.name in gates.SMOOTH_RULES:
            self._linearised[call.name] = None
        if len(piece.slots) < len(call.live) and call.name in linear.PRODUCTS:
            self._linearised["a product of two activations"] = None
        passes = call.name not in _MIXING and any(n in self._gated for n in inputs)
        if piece.gated or passes:
            self._gated.add(number)
        self._steps.append(
            Step(
                call=index,
                op=call.name,
                inputs=inputs,
                positions=tuple(names.index(name) for name, _ in piece.slots),
                output=number,
                map=piece.map,
                constant=piece.constant,
                shape=output.shape,
                squares=squares if isinstance(piece.map, Summed) else (),
                weighted=call.name in _MIXING and not frozen,
            )
        )
        self._marks.put(output, number, written=written)

    def _source(self, tensor: Tensor) -> int:
        number, self._count = self._count, self._count + 1
        self._sources[number] = tensor.detach().clone()
        self._marks.put(tensor, number, written=True)
        return number

    def _refuse(self, mark: Frozen) -> NoReturn:
        raise MeasurementError(
            f"{mark.op} is not piecewise linear, so the network has no exact paths: "
            "pass linearise=True, which freezes such gates and attention weights at "
            "their values in the true pass, and says so in the reading"
        )


def _writes(func: Any) -> bool:
    return func._schema.name.endswith("_") and func._schema.is_mutable


def _functional(func: Any) -> Any:
    """Return the operator that makes a new tensor instead of writing to one."""
    if not _writes(func):
        return func
    name = func._schema.name.partition("::")[2].removesuffix("_")
    packet = getattr(torch.ops.aten, name, None)
    overload = func._overloadname
    return getattr(packet, overload, func) if packet is not None else func


def _squares(
    func: Any, tensors: dict[Slot, Tensor], marks: dict[Slot, int | Frozen | None]
) -> tuple[float, ...]:
    """Return squared norms of the operands of a sum of two tracked tensors."""
    name = func._schema.name.partition("::")[2].removesuffix("_")
    live = [slot for slot, mark in marks.items() if isinstance(mark, int)]
    if name not in ("add", "sub") or len(live) != 2:
        return ()
    live.sort(key=lambda slot: slot[0] != "self")
    return tuple(float(tensors[slot].double().square().sum()) for slot in live)

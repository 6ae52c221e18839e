"""The graph of the signal: values that depend on the inputs, and their dominators.

The *signal* starts at floating-point inputs and where tokens become numbers. A value
dominates another if every path of the signal to the other passes through it; the paths
to two values fork at the nearest value that dominates both.
"""

import math
from collections.abc import Iterable
from functools import lru_cache

from .operators import SLICES, operator_kind
from .recording import Recording, Ref, Value
from .steps import Step, step_of

ROOT = -1
_KEEPS_SIZE = frozenset("view scale shift activation step".split())


class Graph:
    """The signal of one recorded forward pass.

    Attributes:
        recording: The forward pass.
        steps: Effect of each call on the signal, by index of the call.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        count = len(recording.values)
        self.steps: dict[int, Step] = {}
        self._readers: dict[int, list[int]] = {}
        self._signal, self._data = [False] * count, [False] * count
        self._same = list(range(count))
        self._names: list[frozenset[str]] = [frozenset()] * count
        self._parents: list[tuple[int, ...]] = [()] * count
        self._size = [math.prod(value.shape) for value in recording.values]
        self._sources = [0] * count
        self._dominator, self._depth = [ROOT] * count, [0] * count
        self._first_slice: dict[object, int] = {}
        for value in recording.values:
            self._add(value)
        self.between = lru_cache(maxsize=4096)(self._between)

    def signal(self, number: int) -> bool:
        """Return whether a value carries the signal."""
        return self._signal[number]

    def parents(self, number: int) -> tuple[int, ...]:
        """Return the signals that a signal was computed from."""
        return self._parents[number]

    def step(self, number: int) -> Step | None:
        """Return the step that computed a value."""
        call = self.recording.values[number].call
        return None if call is None else self.steps.get(call)

    def readers(self, number: int) -> list[int]:
        """Return the calls that read a signal."""
        return self._readers.get(self._same[number], [])

    def size(self, number: int) -> int:
        """Return how many numbers a value holds, without those repeated by expand."""
        return self._size[number]

    def names(self, number: int) -> frozenset[str]:
        """Return the parameters that a value was computed from; none for a signal."""
        return self._names[number]

    def same(self, number: int) -> int:
        """Return the first value that is the same slice of the same value."""
        return self._same[number]

    def module_of(self, call: int) -> str:
        """Return the path of the submodule that made a call."""
        return self.recording.calls[call].module

    def _add(self, value: Value) -> None:
        """Fill in a value, given all values before it."""
        number = value.number
        if value.source == "input":
            self._data[number] = True
            self._signal[number] = _floating(value)
        elif value.source == "parameter":
            self._names[number] = frozenset([value.name])
        elif value.source == "alias":
            self._inherit(number, value.of)
        elif value.call is not None:
            self._add_result(value)
        if self._signal[number]:
            self._set_dominator(number)

    def _add_result(self, value: Value) -> None:
        number, call = value.number, self.recording.calls[value.call or 0]
        step = self.steps.get(call.index) or self._read(value)
        if step is not None:
            self._parents[number] = tuple(self._same[n] for n in step.reads)
            self._signal[number] = self._data[number] = True
            if step.kind in _KEEPS_SIZE and len(step.reads) == 1:
                size = self._size[step.reads[0]]
                self._size[number] = min(self._size[number], size)
            self._identify(value, step)
        elif operator_kind(call.name) != "factory":
            # The first argument of a copy is overwritten.
            of = call.inputs[1:] if call.name == "copy" else call.inputs
            self._inherit(number, of)
            if self._data[number] and not self._signal[number] and _floating(value):
                self._signal[number] = True  # where tokens become numbers

    def _read(self, value: Value) -> Step | None:
        call = self.recording.calls[value.call or 0]
        step = step_of(
            call,
            lambda n: self._signal[n],
            lambda n: bool(self._names[n]),
            lambda n: math.prod(self.recording.values[n].shape),
        )
        if step is not None:
            self.steps[call.index] = step
            for read in step.reads:
                self._readers.setdefault(self._same[read], []).append(call.index)
        return step

    def _inherit(self, number: int, of: Iterable[int]) -> None:
        """Copy signal, data and parameter names from the values it was made from."""
        for other in of:
            self._names[number] |= self._names[other]
            self._data[number] |= self._data[other]
            self._signal[number] |= self._signal[other]
        if self._signal[number]:
            parents = [self._same[other] for other in of if self._signal[other]]
            self._parents[number] = tuple(dict.fromkeys(parents))
            if len(parents) == 1 and self.recording.values[number].source == "alias":
                self._same[number] = parents[0]

    def _identify(self, value: Value, step: Step) -> None:
        """Give equal slices of one value the same number."""
        call = self.recording.calls[step.call]
        if call.name in SLICES:
            place = call.outputs.index(value.number)
            arguments = self._with_same(call.arguments)
            key = (call.operator, arguments, call.options, place)
            first = self._first_slice.setdefault(key, value.number)
            self._same[value.number] = self._same[first]

    def _with_same(self, argument: object) -> object:
        if isinstance(argument, Ref):
            return Ref(self._same[argument.number])
        if isinstance(argument, tuple):
            return tuple(self._with_same(item) for item in argument)
        return argument

    def _set_dominator(self, number: int) -> None:
        """Find the nearest dominator of a signal, and the inputs it depends on."""
        parents = self._parents[number]
        if parents:
            above = parents[0]
            for parent in parents[1:]:
                above = self.common_dominator(above, parent)
            self._dominator[number] = above
            for parent in parents:
                self._sources[number] |= self._sources[parent]
        else:
            self._sources[number] = 1 << number
        above = self._dominator[number]
        self._depth[number] = 1 + (self._depth[above] if above != ROOT else 0)

    def common_dominator(self, a: int, b: int) -> int:
        """Return the nearest value that dominates both, ROOT if none does."""
        while a != b and ROOT not in (a, b):
            if self._depth[a] < self._depth[b]:
                b = self._dominator[b]
            else:
                a = self._dominator[a]
        return a if a == b else ROOT

    def share_source(self, a: int, b: int) -> bool:
        """Return whether two values depend on a common source."""
        return bool(self._sources[a] & self._sources[b])

    def reaches(self, a: int, ends: Iterable[int]) -> bool:
        """Return whether the signal runs from a value to any of ``ends``."""
        return a in self._ancestors(ends, a)

    def _between(self, entry: int, ends: tuple[int, ...]) -> tuple[int, ...]:
        """List the values on all paths from one to others, without the first."""
        reached = {entry}
        for number in sorted(self._ancestors(ends, entry) - {entry}):
            if any(parent in reached for parent in self._parents[number]):
                reached.add(number)
        return tuple(sorted(reached - {entry}))

    def _ancestors(self, ends: Iterable[int], least: int) -> set[int]:
        """Return values and all their ancestors, down to the number ``least``."""
        todo, seen = [end for end in ends if end >= least], set()
        while todo:
            number = todo.pop()
            if number not in seen:
                seen.add(number)
                todo += [p for p in self._parents[number] if p >= least]
        return seen

    def steps_making(self, values: Iterable[int]) -> list[Step]:
        """Return the steps that computed values, in order."""
        calls = {self.recording.values[number].call for number in values}
        return [self.steps[c] for c in sorted(c for c in calls if c in self.steps)]


def _floating(value: Value) -> bool:
    return value.dtype.startswith(("float", "bfloat", "complex"))

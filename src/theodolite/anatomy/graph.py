"""The graph of the signal: values that come from the inputs, and who dominates whom.

The *signal* starts at floating-point inputs and where tokens become numbers. A value
dominates another if every way of the signal to the other passes it; the nearest value
that dominates two is where their ways fork.
"""

from collections.abc import Iterable
from functools import lru_cache

from theodolite.anatomy.recording import Recording, Ref, Value
from theodolite.anatomy.steps import Step, step_of
from theodolite.anatomy.vocabulary import SLICES, word_of

ROOT = -1
_KEEPS_SIZE = frozenset("view scale shift activation step".split())


class Graph:
    """What a recording says of the signal.

    Args:
        recording: One forward pass.

    Attributes:
        recording: The same.
        steps: By index of the call, what it does to the signal.
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
        self._size = [_numel(value) for value in recording.values]
        self._sources = [0] * count
        self._above, self._depth = [ROOT] * count, [0] * count
        self._alike: dict[object, int] = {}
        for value in recording.values:
            self._place(value)
        self.way = lru_cache(maxsize=4096)(self._way)

    def signal(self, number: int) -> bool:
        """Tell whether a value carries the signal."""
        return self._signal[number]

    def parents(self, number: int) -> tuple[int, ...]:
        """Return the signals that a signal was made from."""
        return self._parents[number]

    def step(self, number: int) -> Step | None:
        """Return the step that made a value."""
        call = self.recording.values[number].call
        return None if call is None else self.steps.get(call)

    def readers(self, number: int) -> list[int]:
        """Return the calls that read a signal."""
        return self._readers.get(self._same[number], [])

    def size(self, number: int) -> int:
        """Count the numbers of a value, not counting those repeated by expansion."""
        return self._size[number]

    def names(self, number: int) -> frozenset[str]:
        """Return the parameters that a value was made from, if it is no signal."""
        return self._names[number]

    def _place(self, value: Value) -> None:
        """Work out what a value is, given all before it."""
        number = value.number
        if value.source == "input":
            self._data[number] = True
            self._signal[number] = _floating(value)
        elif value.source == "parameter":
            self._names[number] = frozenset([value.name])
        elif value.source == "alias":
            self._follow(number, value.of)
        elif value.call is not None:
            self._place_result(value)
        if self._signal[number]:
            self._rank(number)

    def _place_result(self, value: Value) -> None:
        number, call = value.number, self.recording.calls[value.call or 0]
        step = self.steps.get(call.index) or self._read(value)
        if step is not None:
            self._parents[number] = tuple(self._same[n] for n in step.reads)
            self._signal[number] = True
            self._data[number] = True
            self._shrink(number, step)
            self._identify(value, step)
        elif word_of(call.name) != "factory":
            # What is written over is gone.
            of = call.inputs[1:] if call.name == "copy" else call.inputs
            self._follow(number, of)
            if self._data[number] and not self._signal[number] and _floating(value):
                self._signal[number] = True  # where tokens become numbers

    def _read(self, value: Value) -> Step | None:
        call = self.recording.calls[value.call or 0]
        step = step_of(
            call,
            lambda n: self._signal[n],
            lambda n: bool(self._names[n]),
            lambda n: _numel(self.recording.values[n]),
        )
        if step is not None:
            self.steps[call.index] = step
            for read in step.reads:
                self._readers.setdefault(self._same[read], []).append(call.index)
        return step

    def _follow(self, number: int, of: Iterable[int]) -> None:
        """Give a value what those it was made from have."""
        for other in of:
            self._names[number] |= self._names[other]
            self._data[number] |= self._data[other]
            self._signal[number] |= self._signal[other]
        if self._signal[number]:
            held = [self._same[other] for other in of if self._signal[other]]
            self._parents[number] = tuple(dict.fromkeys(held))
            if len(held) == 1 and self.recording.values[number].source == "alias":
                self._same[number] = held[0]

    def _shrink(self, number: int, step: Step) -> None:
        if step.word in _KEEPS_SIZE and len(step.reads) == 1:
            self._size[number] = min(self._size[number], self._size[step.reads[0]])

    def _identify(self, value: Value, step: Step) -> None:
        """Take the same part of the same value for the same."""
        call = self.recording.calls[step.call]
        if call.name not in SLICES:
            return
        place = call.outputs.index(value.number)
        key = (call.operator, self._plain(call.arguments), call.options, place)
        first = self._alike.setdefault(key, value.number)
        self._same[value.number] = self._same[first]

    def _plain(self, given: object) -> object:
        if isinstance(given, Ref):
            return Ref(self._same[given.number])
        if isinstance(given, tuple):
            return tuple(self._plain(item) for item in given)
        return given

    def same(self, number: int) -> int:
        """Return the first value that is the same part of the same value."""
        return self._same[number]

    def _rank(self, number: int) -> None:
        """Find the nearest dominator, and where the signal starts."""
        parents = self._parents[number]
        if parents:
            above = parents[0]
            for parent in parents[1:]:
                above = self.nearest(above, parent)
            self._above[number] = above
            for parent in parents:
                self._sources[number] |= self._sources[parent]
        else:
            self._sources[number] = 1 << number
        above = self._above[number]
        self._depth[number] = 1 + (self._depth[above] if above != ROOT else 0)

    def nearest(self, a: int, b: int) -> int:
        """Return the nearest value that dominates both, ROOT if none does."""
        while a != b and ROOT not in (a, b):
            if self._depth[a] < self._depth[b]:
                b = self._above[b]
            else:
                a = self._above[a]
        return a if a == b else ROOT

    def related(self, a: int, b: int) -> bool:
        """Tell whether two values come from a common source."""
        return bool(self._sources[a] & self._sources[b])

    def precedes(self, a: int, ends: Iterable[int]) -> bool:
        """Tell whether the signal runs from a value to one of others."""
        work, seen = [end for end in ends if end >= a], set()
        while work:
            number = work.pop()
            if number == a:
                return True
            if number not in seen:
                seen.add(number)
                work += [p for p in self._parents[number] if p >= a]
        return False

    def _way(self, entry: int, ends: tuple[int, ...]) -> tuple[int, ...]:
        """List the values on all ways from one to others, without the first."""
        work, seen = [end for end in ends if end > entry], set()
        while work:
            number = work.pop()
            if number not in seen:
                seen.add(number)
                work += [p for p in self._parents[number] if p > entry]
        reached = {entry}
        for number in sorted(seen):
            if any(parent in reached for parent in self._parents[number]):
                reached.add(number)
        return tuple(sorted(reached - {entry}))

    def along(self, values: Iterable[int]) -> list[Step]:
        """Return the steps that made values, in order."""
        calls = {self.recording.values[number].call for number in values}
        return [self.steps[c] for c in sorted(c for c in calls if c in self.steps)]


def _floating(value: Value) -> bool:
    return value.dtype.startswith(("float", "bfloat", "complex"))


def _numel(value: Value) -> int:
    found = 1
    for size in value.shape:
        found *= size
    return found

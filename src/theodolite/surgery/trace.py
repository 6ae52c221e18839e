"""One run of a network: its operators, and the torch functions each forward calls.

A recording of anatomy knows operators, and which module ran them. To change a forward,
one must also know which torch function it called, and which call of it: the same run
is therefore recorded at both levels at once.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor, nn

from theodolite.anatomy import Recorder, Recording, record
from theodolite.instruments import Batch, Listener

from .edits import Edit, read_sum

Key = int | str


@dataclass(frozen=True, kw_only=True)
class FunctionCall:
    """One call of a torch function, made directly by a forward."""

    visit: int  # number of the visit whose forward made it
    name: str  # name of the function; ``"sum"`` for a sum
    ordinal: int  # its number among the visit's calls of that name
    first: int  # index of the first operator that it ran
    stop: int  # index of the first operator after it
    # Values of its tensor arguments, by place; of a sum, its operands.
    inputs: dict[Key, int]
    outputs: tuple[int, ...]  # values of the tensors that it returned
    # How many submodules the forward had run before it, and the last of them.
    after: tuple[int, str] = (0, "")
    written: bool = False  # whether it wrote to its first operand


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A run at both levels."""

    recording: Recording  # calls of operators, values and visits
    functions: tuple[FunctionCall, ...]  # calls of functions, in order
    # By visit, the values of its arguments, by index or keyword.
    given: dict[int, dict[Key, int]]
    # By visit, the value that it returned; none if that is not a single tensor.
    returned: dict[int, tuple[int, ...]]
    # Visits of modules that are not submodules of the module that ran them.
    outside: frozenset[int]
    overwrites: frozenset[int]  # visits that overwrite their arguments

    def function_of(self, call: int) -> FunctionCall | None:
        """Return the function that ran an operator, if the visit itself called it."""
        visit = self.recording.calls[call].visit
        for each in self.functions:
            if each.first <= call < each.stop and each.visit == visit:
                return each
        return None

    def hides_sums(self, visit: int) -> bool:
        """Return whether a forward runs an unregistered module that adds."""
        hidden = {
            each.index
            for each in self.recording.visits
            if each.parent == visit and each.index in self.outside
        }
        return any(
            each.name == "sum" and hidden & set(self.recording.around(each.visit))
            for each in self.functions
        )

    def keys_of(self, visit: int, value: int) -> tuple[Key, ...]:
        """Return the arguments that passed a value to a visit."""
        given = self.given.get(visit, {})
        return tuple(key for key, number in given.items() if number == value)

    def visits_of(self, path: str) -> list[int]:
        """List the visits of a module."""
        return [v.index for v in self.recording.visits if v.module == path]


def trace_run(model: nn.Module, batch: Batch) -> Trace:
    """Run a model once and record it at both levels, without changing it."""
    notes = _Notes()
    recording = record(model, batch, beside=notes.beside)
    return Trace(
        recording=recording,
        functions=tuple(notes.functions),
        given=notes.given,
        returned=notes.returned,
        outside=frozenset(notes.outside),
        overwrites=frozenset(notes.overwrites),
    )


class _Notes(Listener):
    """Notes torch functions, and inputs and outputs of modules, beside a recorder."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, str]] = Counter()
        self._ran: dict[int, tuple[int, str]] = {}
        self._inner: dict[int, dict[int, str]] = {}
        self.outside: set[int] = set()
        self.overwrites: set[int] = set()
        self.functions: list[FunctionCall] = []
        self.given: dict[int, dict[Key, int]] = {}
        self.returned: dict[int, tuple[int, ...]] = {}

    def beside(self, recorder: Recorder) -> Self:
        """Take numbers from a recorder, which is entered first."""
        self._recorder = recorder
        return self

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        torch_sum = read_sum(function, args, kwargs)
        name = "sum" if torch_sum is not None else getattr(function, "__name__", "")
        if name.startswith("__"):  # reads of attributes, and indexing
            return function(*args, **kwargs)
        given = {**dict(enumerate(args)), **kwargs}
        if torch_sum is not None:
            given = dict(enumerate(torch_sum.operands))
        inputs = self._numbers(given)
        first, visit = self._recorder.here()
        after = self._ran.get(visit, (0, ""))
        ordinal = self._counts[visit, name]
        self._counts[visit, name] += 1
        result = function(*args, **kwargs)
        self.functions.append(
            FunctionCall(
                visit=visit,
                name=name,
                ordinal=ordinal,
                first=first,
                stop=self._recorder.here()[0],
                inputs=inputs,
                outputs=self._all(result),
                after=after,
                written=torch_sum is not None and torch_sum.in_place,
            )
        )
        return result

    def on_enter(self, module: nn.Module, args: Any) -> None:
        visit = self._recorder.inside[-1]
        self.given[visit] = self._numbers(dict(enumerate(args)))

    def on_leave(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        *above, visit = self._recorder.inside
        held = self._numbers(dict(enumerate(args)))
        if any(self.given[visit].get(key) != number for key, number in held.items()):
            self.overwrites.add(visit)
        if above and not isinstance(module, Edit):
            path = self._parts(self.running[-2]).get(id(module))
            if path is None:
                self.outside.add(visit)
            else:
                count, _ = self._ran.get(above[-1], (0, ""))
                self._ran[above[-1]] = count + 1, path
        self.given[visit] |= self._numbers(kwargs)
        self.returned[visit] = self._all(output) if isinstance(output, Tensor) else ()

    def _parts(self, module: nn.Module) -> dict[int, str]:
        if id(module) not in self._inner:
            parts = module.named_modules()
            self._inner[id(module)] = {id(part): path for path, part in parts}
        return self._inner[id(module)]

    def _numbers(self, given: dict[Any, Any]) -> dict[Key, int]:
        return {
            key: self._recorder.number(value)
            for key, value in given.items()
            if isinstance(value, Tensor)
        }

    def _all(self, output: Any) -> tuple[int, ...]:
        parts = output if isinstance(output, tuple | list) else [output]
        return tuple(self._recorder.number(p) for p in parts if isinstance(p, Tensor))

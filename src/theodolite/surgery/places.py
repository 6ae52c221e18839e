"""Find where a model's code computes a sum, and edit its operands."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torch import nn

from theodolite.anatomy import Addition, Ref, Span
from theodolite.core import SurgeryError

from .altered import Key, SumEdit, TensorSource
from .attaching import describe, free_name, learnable_number
from .edits import Edit, Factor, ScaleEdit
from .operation import Operation
from .trace import FunctionCall, Trace


@dataclass(frozen=True, kw_only=True)
class SumPlace:
    """A sum in a module's own forward."""

    path: str  # path of the module
    ordinal: int  # which sum of its forward
    operand: int  # which operand
    visit: int  # the visit in which it was seen
    # How many submodules its forward had run before, and the last of them.
    after: tuple[int, str]

    def edit(
        self, label: str, edit: Edit, source: TensorSource | None = None
    ) -> SumEdit:
        """Return an edit on this operand."""
        return SumEdit(
            label=label,
            ordinal=self.ordinal,
            place=self.operand,
            edit=edit,
            after=self.after,
            source=source,
        )


@dataclass(frozen=True, kw_only=True)
class ModulePlace:
    """A module that reads one value and returns another."""

    path: str  # path of the module
    keys: tuple[Key, ...]  # where among its arguments the value is passed
    keep: bool = False  # whether the module writes over it


def place_of_span(trace: Trace, span: Span) -> SumPlace:
    """Return where a span is added; raise if that sum cannot be changed."""
    call = _sum_at(trace, span.into)
    argument = trace.recording.calls[span.into].arguments[span.position]
    number = argument.number if isinstance(argument, Ref) else None
    operands = [key for key, value in call.inputs.items() if value == number]
    if len(operands) != 1 or not isinstance(operands[0], int):
        raise SurgeryError(
            f"the sum in {_named(trace, call.visit)} converts what it adds "
            "before it adds it, wanted are operands as the code passes them: convert "
            "them beforehand"
        )
    return _checked(trace, call, operands[0])


def place_of_sum(trace: Trace, addition: Addition) -> SumPlace:
    """Return where the whole sum of an addition is computed."""
    return _checked(trace, _sum_at(trace, addition.call), 0)


def _sum_at(trace: Trace, index: int) -> FunctionCall:
    call = trace.function_of(index)
    if call is None or call.name != "sum":
        visit = trace.recording.calls[index].visit
        made = "code that torch does not show" if call is None else call.name
        raise SurgeryError(
            f"the sum in {_named(trace, visit)} is made inside {made}, wanted is "
            "a + b, torch.add or their like in a forward: write the sum out"
        )
    return call


def _checked(trace: Trace, call: FunctionCall, operand: int) -> SumPlace:
    path = trace.recording.visits[call.visit].module
    if "<" in path:
        raise SurgeryError(
            f"a sum is made in {path}, which the model does not register, wanted is a "
            "submodule with a name: assign it to an attribute of its owner"
        )
    if trace.hides_sums(call.visit):
        raise SurgeryError(
            f"{describe(path)} runs a module that it does not register, whose sums "
            "cannot be distinguished from its own, wanted are submodules with names: "
            "assign it to an attribute"
        )
    return SumPlace(
        path=path,
        ordinal=call.ordinal,
        operand=operand,
        visit=call.visit,
        after=call.after,
    )


def spanning_module(trace: Trace, span: Span) -> ModulePlace | None:
    """Return the module that computes a span's exit from its entry, if one does."""
    for visit in trace.recording.visits:
        inside = all(visit.first <= call < visit.stop for call in span.calls)
        keys = trace.keys_of(visit.index, span.entry)
        returned = trace.returned.get(visit.index, ())
        if not (span.calls and inside and keys and returned == (span.exit,)):
            continue
        once = len(trace.visits_of(visit.module)) == 1
        if once and visit.module and "<" not in visit.module:
            keep = visit.index in trace.overwrites
            return ModulePlace(path=visit.module, keys=keys, keep=keep)
    return None


def entry_module(trace: Trace, span: Span) -> ModulePlace:
    """Return the layer that reads a span's fork; raise for several or a function."""
    calls = trace.recording.calls
    entries: dict[int, tuple[Key, ...]] = {}
    for call in (calls[c] for c in span.calls if span.entry in calls[c].inputs):
        around = trace.recording.around(call.visit)
        readers = [v for v in around if trace.keys_of(v, span.entry)]
        if readers:
            entries[readers[0]] = trace.keys_of(readers[0], span.entry)
        else:
            entries[-1] = ()
    paths = [trace.recording.visits[visit].module for visit in entries if visit >= 0]
    if len(entries) != 1 or not paths or not paths[0] or "<" in paths[0]:
        readers = "a function" if -1 in entries else f"{len(entries)} layers"
        raise SurgeryError(
            f"the branch of {_named(trace, calls[span.into].visit)} starts by "
            f"{readers}, wanted is one layer with a name: make its first step a "
            "submodule"
        )
    if len(trace.visits_of(paths[0])) != 1:
        raise SurgeryError(
            f"module {paths[0]!r} runs several times, wanted is one that starts one "
            "branch only: give each branch its own"
        )
    return ModulePlace(path=paths[0], keys=next(iter(entries.values())))


def source_of(trace: Trace, place: SumPlace, value: int) -> TensorSource:
    """Return where the forward that computes a sum holds a value, or raise."""
    for key in trace.keys_of(place.visit, value):
        return TensorSource(kind="input", key=key)
    for each in trace.functions:
        if each.visit == place.visit and each.outputs == (value,) and not each.written:
            return TensorSource(kind="function", name=each.name, ordinal=each.ordinal)
    inner = [v for v in trace.recording.visits if v.parent == place.visit]
    prefix = f"{place.path}." if place.path else ""
    for visit in inner:
        own = [v for v in inner if v.module == visit.module]
        if len(own) > 1 or not visit.module.startswith(prefix) or "<" in visit.module:
            continue
        name = visit.module.removeprefix(prefix)
        if trace.returned.get(visit.index) == (value,):
            return TensorSource(kind="gave", name=name)
        for key in trace.keys_of(visit.index, value):
            return TensorSource(kind="given", name=name, key=key)
    raise SurgeryError(
        f"the tensor from which skip and branch of {_named(trace, place.visit)} "
        "start is made where it cannot be reached, wanted is an argument or a result "
        "of a function or layer there: make the skip one submodule"
    )


def _named(trace: Trace, visit: int) -> str:
    return describe(trace.recording.visits[visit].module)


def add_factor(
    operation: Operation, path: str, scale: float, *, learnable: bool
) -> tuple[Factor, dict[str, nn.Parameter | nn.Module]]:
    """Return a factor for a module's edit: the number, or a new parameter's name."""
    if not learnable:
        return scale, {}
    name = free_name(operation.model.get_submodule(path), "scale")
    return name, {name: learnable_number(operation.model, scale)}


def add_scale(
    operation: Operation, place: SumPlace, scale: float, *, learnable: bool
) -> None:
    """Scale an operand, by a parameter of its module if learnable."""
    factor, extras = add_factor(operation, place.path, scale, learnable=learnable)
    edit = place.edit(operation.label(), ScaleEdit(factor))
    operation.attach(place.path, edit, extras)


def edit_operands(
    operation: Operation,
    spans: Sequence[tuple[int, Span]],
    change: Callable[[int, SumPlace, Span], None],
    *,
    strict: bool,
) -> None:
    """Call ``change(number, place, span)`` once for each place where spans are added.

    Where a change is not possible, raise if ``strict``, else note it in the log.
    """
    places: dict[int, SumPlace] = {}
    for number, span in spans:
        module = operation.trace.recording.calls[span.into].module
        try:
            places[number] = place_of_span(operation.trace, span)
        except SurgeryError as error:
            if strict:
                raise
            operation.leave(module, span.role, "", error)
    done: set[tuple[str, int, int]] = set()
    for number, span in spans:
        place = places.get(number)
        if place is None:
            continue
        key = place.path, place.ordinal, place.operand
        if key not in done:
            _require_all_runs(operation, place, places.values())
            change(number, place, span)
        done.add(key)


def require_one_run(operation: Operation, place: SumPlace) -> SumPlace:
    """Return a place if its module runs once, or raise."""
    _require_all_runs(operation, place, [place])
    return place


def _require_all_runs(
    operation: Operation, place: SumPlace, selected: Iterable[SumPlace]
) -> None:
    """Raise if a module runs again and adds something else at the same place."""
    visits = operation.trace.visits_of(place.path)
    changed = {
        each.visit
        for each in selected
        if (each.path, each.ordinal, each.operand)
        == (place.path, place.ordinal, place.operand)
    }
    if set(visits) - changed:
        raise SurgeryError(
            f"module {place.path!r} runs {len(visits)} times and is asked to change in "
            f"{len(changed)} of them, wanted is the same in all: choose all its "
            "additions, or give each run a module of its own"
        )

"""Where in somebody's code a sum is made, and what must be changed there."""

from dataclasses import dataclass

from theodolite.anatomy import Addition, Ref, Span
from theodolite.core import SurgeryError
from theodolite.surgery.altered import Key, Tap
from theodolite.surgery.settings import named
from theodolite.surgery.transcript import FunctionCall, Transcript


@dataclass(frozen=True, kw_only=True)
class Place:
    """A sum in a module's own forward.

    Attributes:
        path: Of the module.
        ordinal: Which sum of its forward.
        operand: Which operand.
        visit: The visit in which it was seen.
        after: How many submodules its forward had run before, and which last.
    """

    path: str
    ordinal: int
    operand: int
    visit: int
    after: tuple[int, str]


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A module that is given one value and gives another.

    Attributes:
        path: Of the module.
        keys: Where among its arguments the value comes.
        keep: Whether the module writes over it.
    """

    path: str
    keys: tuple[Key, ...]
    keep: bool = False


def place_of(transcript: Transcript, span: Span) -> Place:
    """Find where a span is added.

    Raises:
        SurgeryError: The sum is not made by a function that can be changed.
    """
    found = _sum_at(transcript, span.into)
    argument = transcript.recording.calls[span.into].arguments[span.position]
    number = argument.number if isinstance(argument, Ref) else None
    operands = [key for key, value in found.inputs.items() if value == number]
    if len(operands) != 1 or not isinstance(operands[0], int):
        raise SurgeryError(
            f"the sum in {_named(transcript, found.visit)} converts what it adds "
            "before it adds it, wanted are operands as the code passes them: convert "
            "them beforehand"
        )
    return _checked(transcript, found, operands[0])


def sum_of(transcript: Transcript, addition: Addition) -> Place:
    """Find where the whole sum of an addition is made."""
    return _checked(transcript, _sum_at(transcript, addition.call), 0)


def _sum_at(transcript: Transcript, call: int) -> FunctionCall:
    found = transcript.function_of(call)
    if found is None or found.name != "sum":
        visit = transcript.recording.calls[call].visit
        made = "code that torch does not show" if found is None else found.name
        raise SurgeryError(
            f"the sum in {_named(transcript, visit)} is made inside {made}, wanted is "
            "a + b, torch.add or their like in a forward: write the sum out"
        )
    return found


def _checked(transcript: Transcript, found: FunctionCall, operand: int) -> Place:
    path = transcript.recording.visits[found.visit].module
    if "<" in path:
        raise SurgeryError(
            f"a sum is made in {path}, which the model does not register, wanted is a "
            "submodule with a name: assign it to an attribute of its owner"
        )
    if transcript.hides_sums(found.visit):
        raise SurgeryError(
            f"{named(path)} runs a module that it does not register, whose sums cannot "
            "be told from its own, wanted are submodules with names: assign it to an "
            "attribute"
        )
    return Place(
        path=path,
        ordinal=found.ordinal,
        operand=operand,
        visit=found.visit,
        after=found.after,
    )


def passage_of(transcript: Transcript, span: Span) -> Passage | None:
    """Find the module that makes a span's exit from its entry, None if none does."""
    for visit in transcript.recording.visits:
        inside = all(visit.first <= call < visit.stop for call in span.calls)
        given = transcript.given.get(visit.index, {})
        keys = tuple(key for key, value in given.items() if value == span.entry)
        gave = transcript.gave.get(visit.index, ())
        if not (span.calls and inside and keys and gave == (span.exit,)):
            continue
        alone = len(transcript.visits_of(visit.module)) == 1
        if alone and visit.module and "<" not in visit.module:
            keep = visit.index in transcript.overwrites
            return Passage(path=visit.module, keys=keys, keep=keep)
    return None


def entrance_of(transcript: Transcript, span: Span) -> Passage:
    """Find the one layer by which a span leaves its fork.

    Raises:
        SurgeryError: There are several, or a function takes the fork.
    """
    calls = transcript.recording.calls
    first = [c for c in span.calls if span.entry in calls[c].inputs]
    found: dict[int, tuple[Key, ...]] = {}
    for call in first:
        for visit in transcript.recording.around(calls[call].visit):
            given = transcript.given.get(visit, {})
            keys = tuple(key for key, value in given.items() if value == span.entry)
            if keys:
                found[visit] = keys
                break
        else:
            found[-1] = ()
    paths = [transcript.recording.visits[visit].module for visit in found if visit >= 0]
    if len(found) != 1 or not paths or not paths[0] or "<" in paths[0]:
        ways = "a function" if -1 in found else f"{len(found)} layers"
        raise SurgeryError(
            f"the branch of {_named(transcript, calls[span.into].visit)} starts by "
            f"{ways}, wanted is one layer with a name: make its first step a submodule"
        )
    if len(transcript.visits_of(paths[0])) != 1:
        raise SurgeryError(
            f"module {paths[0]!r} runs several times, wanted is one that starts one "
            "branch only: give each branch its own"
        )
    return Passage(path=paths[0], keys=next(iter(found.values())))


def tap_of(transcript: Transcript, place: Place, value: int) -> Tap:
    """Find where the forward that makes a sum holds a value.

    Raises:
        SurgeryError: Nowhere that can be reached.
    """
    given = transcript.given.get(place.visit, {})
    for key, number in given.items():
        if number == value:
            return Tap(kind="input", key=key)
    for each in transcript.functions:
        if each.visit == place.visit and each.outputs == (value,) and not each.written:
            return Tap(kind="function", name=each.name, ordinal=each.ordinal)
    inner = [v for v in transcript.recording.visits if v.parent == place.visit]
    prefix = f"{place.path}." if place.path else ""
    for visit in inner:
        own = [v for v in inner if v.module == visit.module]
        if len(own) > 1 or not visit.module.startswith(prefix) or "<" in visit.module:
            continue
        name = visit.module.removeprefix(prefix)
        if transcript.gave.get(visit.index) == (value,):
            return Tap(kind="gave", name=name)
        for key, number in transcript.given.get(visit.index, {}).items():
            if number == value:
                return Tap(kind="given", name=name, key=key)
    raise SurgeryError(
        f"the tensor from which skip and branch of {_named(transcript, place.visit)} "
        "start is made where it cannot be reached, wanted is an argument or a result "
        "of a function or layer there: make the skip one submodule"
    )


def _named(transcript: Transcript, visit: int) -> str:
    return named(transcript.recording.visits[visit].module)

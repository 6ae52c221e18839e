"""Edits on chosen operands of sums, each place once."""

from collections.abc import Callable, Iterable, Sequence

from torch import nn

from theodolite.anatomy import Span
from theodolite.core import SurgeryError
from theodolite.surgery.altered import SumEdit
from theodolite.surgery.attaching import free_name
from theodolite.surgery.edits import Edit, Factor, Scaled
from theodolite.surgery.operation import Operation
from theodolite.surgery.places import Place, place_of
from theodolite.surgery.settings import learned


def put_on(operation: Operation, place: Place, edit: Edit) -> None:
    """Put an edit without parameters on an operand."""
    operation.attach(place.path, _edit(operation, place, edit))


def put_scale(
    operation: Operation, place: Place, scale: float, *, learnable: bool
) -> None:
    """Put a factor on an operand, which is a parameter of its module if learnable."""
    module = operation.model.get_submodule(place.path)
    by: Factor = free_name(module, "scale") if learnable else scale
    extras: dict[str, nn.Parameter | nn.Module] = {}
    if isinstance(by, str):
        extras[by] = learned(operation.model, scale)
    operation.attach(place.path, _edit(operation, place, Scaled(by)), extras)


def on_operands(
    operation: Operation,
    spans: Sequence[tuple[int, Span]],
    change: Callable[[int, Place, Span], None],
    *,
    strict: bool,
) -> None:
    """Change the operands of sums by which spans are added, each place once.

    Args:
        operation: The operation.
        spans: Each with a number of its own.
        change: Does it, from the number, the place and the span.
        strict: Raise where it cannot be done, else write it down.
    """
    places: dict[int, Place] = {}
    for number, span in spans:
        module = operation.transcript.recording.calls[span.into].module
        try:
            places[number] = place_of(operation.transcript, span)
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
            _refuse_others(operation, place, places.values())
            change(number, place, span)
        done.add(key)


def alone(operation: Operation, place: Place) -> Place:
    """Return a place in a module that runs once, or refuse it."""
    _refuse_others(operation, place, [place])
    return place


def _refuse_others(operation: Operation, place: Place, chosen: Iterable[Place]) -> None:
    """Refuse a module that runs again and adds something else at the same place."""
    visits = operation.transcript.visits_of(place.path)
    met = {
        each.visit
        for each in chosen
        if (each.path, each.ordinal, each.operand)
        == (place.path, place.ordinal, place.operand)
    }
    if set(visits) - met:
        raise SurgeryError(
            f"module {place.path!r} runs {len(visits)} times and is asked to change in "
            f"{len(met)} of them, wanted is the same in all: choose all its additions, "
            "or give each run a module of its own"
        )


def _edit(operation: Operation, place: Place, edit: Edit) -> SumEdit:
    return SumEdit(
        label=operation.label(),
        ordinal=place.ordinal,
        place=place.operand,
        edit=edit,
        after=place.after,
    )

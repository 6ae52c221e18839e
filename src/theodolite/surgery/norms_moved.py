"""Norms moved from before the branch to behind the sum, and back."""

from typing import Literal

from torch import nn

from theodolite.anatomy import Addition
from theodolite.core import ConfigError, SurgeryError
from theodolite.instruments import Batch
from theodolite.surgery.altered import RESULT, SumEdit, VisitEdit
from theodolite.surgery.attaching import free_name, unaltered
from theodolite.surgery.edits import Normed
from theodolite.surgery.norm_layers import OVER_CHANNELS, check_norm, without
from theodolite.surgery.operation import Operation, Which, chosen
from theodolite.surgery.places import entrance_of, sum_of
from theodolite.surgery.result import Result
from theodolite.surgery.settings import named
from theodolite.surgery.sums_changed import alone


def move_norms(
    model: nn.Module,
    batch: Batch,
    *,
    to: Literal["pre", "post"],
    which: Which = None,
) -> Result:
    """Move norms, x + f(norm x) → norm(x + f(x)) with ``"post"``, and back with "pre".

    The norm layer with all that it learned goes to its new place; where it stood
    nothing happens.

    Args:
        model: Any network that anatomy understands; not touched.
        batch: Runs it, as the instruments take batches.
        to: Behind the sum (``"post"``), or before the branch (``"pre"``).
        which: Additions by number, or modules; by default all with a norm to move.

    Raises:
        SurgeryError: No norm stands where it could be moved from.
    """
    if to not in ("pre", "post"):
        raise ConfigError(f"to is {to!r}, wanted is 'pre' or 'post'")
    operation = Operation("move_norms", model, batch)
    additions = operation.anatomy.additions
    source = "pre" if to == "post" else "post"
    for number in chosen(additions, which):
        paths = [
            norm.module
            for norm in operation.anatomy.norms
            if norm.addition == number and norm.placement == source
        ]
        module = additions[number].module
        try:
            path = _one(paths, module, source)
            check_norm(operation, path)
            move = _behind if to == "post" else _before
            move(operation, path, additions[number])
        except SurgeryError as error:
            if which is not None:
                raise
            operation.leave(module, "norm", source, error)
    return operation.finish(
        none="the network has no residual addition, wanted is one with a norm to move"
    )


def _one(paths: list[str], module: str, source: str) -> str:
    if len(set(paths)) != 1 or not paths[0] or "<" in paths[0]:
        count = f"{len(set(paths))} norms" if all(paths) else "norms written by hand"
        raise SurgeryError(
            f"the addition in {named(module)} has {count} of placement {source!r}, "
            "wanted is one that is a layer: name additions that have it by which=…"
        )
    return paths[0]


def _behind(operation: Operation, path: str, addition: Addition) -> None:
    """Move a norm behind a sum."""
    place = alone(operation, sum_of(operation.transcript, addition))
    name = free_name(operation.model.get_submodule(place.path), "norm")
    _check_shape(operation, path, addition)
    norm = operation.replace(path, without(operation.model.get_submodule(path)))
    edit = SumEdit(
        label=operation.label(),
        ordinal=place.ordinal,
        place=RESULT,
        edit=Normed(name),
        after=place.after,
    )
    operation.attach(place.path, edit, {name: norm})
    operation.note(path, "norm", "pre", f"post, behind the sum of {named(place.path)}")


def _before(operation: Operation, path: str, addition: Addition) -> None:
    """Move a norm to where a branch starts."""
    if len(addition.branches) != 1:
        raise SurgeryError(
            f"the addition in {named(addition.module)} has {len(addition.branches)} "
            "branches, wanted is one to put the norm before: name others by which=…"
        )
    entrance = entrance_of(operation.transcript, addition.branches[0])
    name = free_name(operation.model.get_submodule(entrance.path), "norm")
    edit = VisitEdit(
        label=operation.label(), before=True, keys=entrance.keys, edit=Normed(name)
    )
    norm = operation.replace(path, without(operation.model.get_submodule(path)))
    operation.attach(entrance.path, edit, {name: norm})
    operation.note(path, "norm", "post", f"pre, before {entrance.path!r}")


def _check_shape(operation: Operation, path: str, addition: Addition) -> None:
    """Refuse a norm for other channels than the sum has."""
    transcript = operation.transcript
    values = transcript.recording.values
    given = transcript.given[transcript.visits_of(path)[0]].get(0)
    came = values[given].shape if given is not None else ()
    goes = values[addition.output].shape
    over_channels = unaltered(operation.model.get_submodule(path)) in OVER_CHANNELS
    axis = 1 if over_channels else -1
    if len(came) != len(goes) or came[axis] != goes[axis]:
        raise SurgeryError(
            f"the norm {path!r} is for shape {came} and the sum has {goes}, wanted are "
            "the same channels: name other additions by which=…"
        )

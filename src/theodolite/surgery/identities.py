"""Projection skips A become I + A."""

from collections.abc import Callable

from torch import nn

from theodolite.anatomy import Addition, Span
from theodolite.core import SurgeryError
from theodolite.instruments import Batch
from theodolite.surgery.altered import SumEdit, VisitEdit
from theodolite.surgery.attaching import free_name
from theodolite.surgery.bridging import bridge
from theodolite.surgery.edits import Edit, Factor, WithIdentity
from theodolite.surgery.operation import Operation, Which, chosen
from theodolite.surgery.places import passage_of, place_of, tap_of
from theodolite.surgery.result import Result
from theodolite.surgery.settings import check_scale, learned, named
from theodolite.surgery.sums_changed import alone


def add_identity(
    model: nn.Module,
    batch: Batch,
    *,
    scale: float = 1.0,
    isometry: bool = False,
    learnable: bool = False,
    which: Which = None,
) -> Result:
    """Add an identity to every projection skip, A → scale · I + A.

    I is the average pool of the projection's stride, scaled to singular values 1, with
    channels padded by zeros on both sides; it starts where skip and branch fork.

    Args:
        model: Any network that anatomy understands; not touched.
        batch: Runs it, as the instruments take batches.
        scale: Factor of I; with 0 and ``learnable``, outputs do not change.
        isometry: Put Haar details in place of the zeros, so that all singular values
            are 1.
        learnable: Make the factor a parameter, one a skip, which starts at ``scale``.
        which: Additions by number, or modules; by default all that project.

    Raises:
        SurgeryError: No skip projects, or I cannot bridge the shapes.

    References:
        MacDonald et al. (2023), On skip connections and normalisation layers in deep
        optimisation, section 6.
    """
    check_scale(scale)
    operation = Operation("add_identity", model, batch)
    additions = operation.anatomy.additions
    for number in chosen(additions, which):
        addition = additions[number]
        if addition.skip.kind != "projection":
            if which is not None:
                raise SurgeryError(
                    f"the skip of {named(addition.module)} is of kind "
                    f"{addition.skip.kind!r}, wanted is a projection, which has "
                    "weights: name others by which=…"
                )
            continue
        try:
            _add(operation, addition, scale, isometry, learnable)
        except SurgeryError as error:
            if which is not None:
                raise
            operation.leave(addition.module, "skip", "A", error)
    kinds = ", ".join(dict.fromkeys(a.skip.kind for a in additions)) or "none at all"
    return operation.finish(
        unchanged=scale == 0,
        none=f"no skip of the network projects (skips: {kinds}), wanted is one with "
        "weights, such as a 1×1 convolution: insert_skips adds skips to blocks that "
        "have none",
    )


def _add(
    operation: Operation,
    addition: Addition,
    scale: float,
    isometry: bool,
    learnable: bool,
) -> None:
    span, values = addition.skip, operation.transcript.recording.values
    shapes = values[span.entry].shape, values[span.exit].shape
    straight = bridge(*shapes, named(addition.module), isometry=isometry)
    path, make = _site(operation, span)
    module = operation.model.get_submodule(path)
    factor: Factor = scale
    extras = {}
    if learnable:
        factor = free_name(module, "scale")
        extras[factor] = learned(operation.model, scale)
    edit = WithIdentity(straight, factor)
    operation.attach(path, make(operation.label(), edit), extras)
    by = "" if scale == 1 and not learnable else f"{scale:g} "
    operation.note(path, "skip", "A", f"{by}{straight} + A")


def _site(
    operation: Operation, span: Span
) -> tuple[str, Callable[[str, Edit], SumEdit | VisitEdit]]:
    """Return which module to change, and how: around a layer, or at the sum."""
    passage = passage_of(operation.transcript, span)
    if passage is not None:
        return passage.path, lambda label, edit: VisitEdit(
            label=label, before=False, keys=passage.keys, edit=edit, keep=passage.keep
        )
    place = alone(operation, place_of(operation.transcript, span))
    tap = tap_of(operation.transcript, place, span.entry)
    return place.path, lambda label, edit: SumEdit(
        label=label,
        ordinal=place.ordinal,
        place=place.operand,
        edit=edit,
        after=place.after,
        tap=tap,
    )

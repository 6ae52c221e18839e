"""Skips: identities added to projections, skips inserted and removed."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.anatomy import Addition, Span
from theodolite.core import ConfigError, SurgeryError
from theodolite.instruments import Batch, measuring
from theodolite.networks import AverageSkip, HaarSkip

from .altered import ModuleEdit, SumEdit
from .attaching import describe
from .edits import Edit, IdentityEdit, ZeroEdit
from .operation import Operation, Which, check_scale, selected
from .places import (
    SumPlace,
    add_factor,
    edit_operands,
    place_of_span,
    require_one_run,
    source_of,
    spanning_module,
)
from .result import Result


class LastAxisSkip(nn.Module):
    """Identity that pads growing features on the last axis with zeros on both sides."""

    def __init__(self, features_in: int, features_out: int) -> None:
        super().__init__()
        extra = features_out - features_in
        self.before, self.after = extra // 2, extra - extra // 2

    def forward(self, x: Tensor) -> Tensor:
        """Pad a batch."""
        return functional.pad(x, (self.before, self.after))


def identity_between(
    start: Sequence[int], end: Sequence[int], where: str, *, isometry: bool
) -> nn.Module:
    """Return the identity from one shape to another, both with samples first.

    ``where`` names the module in errors; ``isometry`` uses Haar details instead of
    zeros.

    Example:
        >>> identity_between((2, 4, 8, 8), (2, 6, 4, 4), "module", isometry=False)
        AverageSkip(4, 6, stride=2)
    """
    if tuple(start) == tuple(end):
        return nn.Identity()
    if len(start) != len(end) or len(start) < 2 or start[0] != end[0]:
        raise _no_identity(start, end, where, "other axes")
    if len(start) > 2 and start[:-1] == end[:-1] and start[-1] < end[-1]:
        return LastAxisSkip(start[-1], end[-1])
    if end[1] < start[1]:
        raise _no_identity(start, end, where, "fewer channels")
    strides = {
        (a // b if b and a % b == 0 else 0)
        for a, b in zip(start[2:], end[2:], strict=True)
    } or {1}
    if len(strides) != 1 or 0 in strides:
        raise _no_identity(start, end, where, "sizes that no stride divides evenly")
    kind = HaarSkip if isometry else AverageSkip
    try:
        skip = kind(start[1], end[1], strides.pop())
        skip(torch.zeros(1, *start[1:], device="cpu"))
    except ConfigError as error:
        raise _no_identity(start, end, where, str(error)) from error
    return skip


def _no_identity(
    start: Sequence[int], end: Sequence[int], where: str, why: str
) -> SurgeryError:
    return SurgeryError(
        f"the identity cannot bridge {tuple(start)} to {tuple(end)} in {where} ({why})"
        ", wanted are as many channels or more and sizes divided by one stride: leave "
        "this skip out by which=…, or pass images of an even size"
    )


@measuring()
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
        model: Any network that anatomy understands; not changed.
        batch: Batch to run it on, in any form that instruments accept.
        scale: Factor of I; with 0 and ``learnable``, outputs do not change.
        isometry: Use Haar details instead of zeros, so that all singular values are 1.
        learnable: Make the factor a parameter, one per skip, that starts at ``scale``.
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
    for number in selected(additions, which):
        addition = additions[number]
        if addition.skip.kind != "projection":
            if which is not None:
                raise SurgeryError(
                    f"the skip of {describe(addition.module)} is of kind "
                    f"{addition.skip.kind!r}, wanted is a projection, which has "
                    "weights: name others by which=…"
                )
            continue
        try:
            _add_identity(operation, addition, scale, isometry, learnable)
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


def _add_identity(
    operation: Operation,
    addition: Addition,
    scale: float,
    isometry: bool,
    learnable: bool,
) -> None:
    span, values = addition.skip, operation.trace.recording.values
    shapes = values[span.entry].shape, values[span.exit].shape
    identity = identity_between(*shapes, describe(addition.module), isometry=isometry)
    path, make = _edit_at(operation, span)
    factor, extras = add_factor(operation, path, scale, learnable=learnable)
    edit = make(operation.label(), IdentityEdit(identity, factor))
    operation.attach(path, edit, extras)
    by = "" if scale == 1 and not learnable else f"{scale:g} "
    operation.note(path, "skip", "A", f"{by}{identity} + A")


def _edit_at(
    operation: Operation, span: Span
) -> tuple[str, Callable[[str, Edit], SumEdit | ModuleEdit]]:
    """Return the module to edit, and the edit: around a layer, or at the sum."""
    layer = spanning_module(operation.trace, span)
    if layer is not None:
        return layer.path, lambda label, edit: ModuleEdit(
            label=label, before=False, keys=layer.keys, edit=edit, keep=layer.keep
        )
    place = require_one_run(operation, place_of_span(operation.trace, span))
    source = source_of(operation.trace, place, span.entry)
    return place.path, lambda label, edit: place.edit(label, edit, source)


@measuring()
def insert_skips(
    model: nn.Module,
    batch: Batch,
    *,
    around: str | Sequence[str],
    scale: float = 0.0,
    learnable: bool = True,
    isometry: bool = False,
) -> Result:
    """Add a skip around modules, M(x) → scale · I x + M(x).

    By default the factor is learned and starts at 0, so that the outputs of a trained
    network do not change.

    Args:
        model: Any network; not changed.
        batch: Batch to run it on, in any form that instruments accept.
        around: Paths of submodules that take and return one tensor.
        scale: Factor of I.
        learnable: Make the factor a parameter, one per skip, that starts at ``scale``.
        isometry: Where shapes change, use Haar details instead of zeros.

    Raises:
        SurgeryError: A module has no one input and output, or I cannot bridge them.
    """
    check_scale(scale)
    paths = [around] if isinstance(around, str) else list(around)
    if not paths:
        raise ConfigError(
            f"around is {around!r}, wanted are paths of submodules: pass for instance "
            "around=['features.3']"
        )
    operation = Operation("insert_skips", model, batch)
    for path in dict.fromkeys(paths):
        identity = identity_between(
            *_end_shapes(operation, path), describe(path), isometry=isometry
        )
        factor, extras = add_factor(operation, path, scale, learnable=learnable)
        visits = set(operation.trace.visits_of(path))
        edit = ModuleEdit(
            label=operation.label(),
            before=False,
            keys=(0,),
            edit=IdentityEdit(identity, factor),
            keep=bool(visits & operation.trace.overwrites),
        )
        operation.attach(path, edit, extras)
        by = "" if scale == 1 and not learnable else f"{scale:g} "
        operation.note(path, "skip", "none", f"{by}{identity}")
    return operation.finish(unchanged=scale == 0)


def _end_shapes(
    operation: Operation, path: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes that a module takes and returns."""
    trace = operation.trace
    visits = trace.visits_of(path)
    if not path or not visits:
        ran = [v.module for v in trace.recording.visits if v.module]
        raise SurgeryError(
            f"around={path!r} is no submodule that ran on the batch, wanted is one of "
            f"{', '.join(dict.fromkeys(ran)) or 'none'}"
        )
    if any(0 not in trace.given[v] or not trace.returned.get(v) for v in visits):
        raise SurgeryError(
            f"module {path!r} does not take a tensor as its first argument and "
            "return one, wanted is one that a skip can go around: name a submodule "
            "inside it"
        )
    values = trace.recording.values
    given, returned = trace.given[visits[0]][0], trace.returned[visits[0]][0]
    return values[given].shape, values[returned].shape


@measuring()
def remove_skips(model: nn.Module, batch: Batch, *, which: Which = None) -> Result:
    """Remove skips: sums of skip and branches become sums of branches.

    The skip is replaced by zeros where it is added; the code around stays as it is.

    Args:
        model: Any network that anatomy understands; not changed.
        batch: Batch to run it on, in any form that instruments accept.
        which: Additions by number, or modules; by default all.

    Raises:
        SurgeryError: There is no skip, or its sum cannot be changed.
    """
    operation = Operation("remove_skips", model, batch)
    additions = operation.anatomy.additions
    spans = [(number, additions[number].skip) for number in selected(additions, which)]

    def change(number: int, place: SumPlace, span: Span) -> None:
        operation.attach(place.path, place.edit(operation.label(), ZeroEdit()))
        operation.note(place.path, "skip", span.kind, "none")

    edit_operands(operation, spans, change, strict=which is not None)
    return operation.finish(none=no_skips_message(operation))


def no_skips_message(operation: Operation) -> str:
    """Return the message that a network has no residual addition, and what it has."""
    others = [other.kind for other in operation.anatomy.others]
    others += [each.reason for each in operation.anatomy.unplaced]
    kinds = ", ".join(dict.fromkeys(others)) or "nothing that joins tensors"
    return (
        f"the network has no residual addition ({kinds}), wanted is a skip that "
        "anatomy can tell from a branch: insert_skips adds some"
    )

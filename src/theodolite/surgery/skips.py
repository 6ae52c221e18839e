"""Skips put around modules, and skips taken away."""

from collections.abc import Sequence

from torch import nn

from theodolite.anatomy import Span
from theodolite.core import ConfigError, SurgeryError
from theodolite.instruments import Batch
from theodolite.surgery.altered import VisitEdit
from theodolite.surgery.attaching import free_name
from theodolite.surgery.bridging import bridge
from theodolite.surgery.edits import Factor, Silenced, WithIdentity
from theodolite.surgery.operation import Operation, Which, chosen
from theodolite.surgery.places import Place
from theodolite.surgery.result import Result
from theodolite.surgery.settings import check_scale, learned, listed, named
from theodolite.surgery.sums_changed import on_operands, put_on


def insert_skips(
    model: nn.Module,
    batch: Batch,
    *,
    around: str | Sequence[str],
    scale: float = 0.0,
    learnable: bool = True,
    isometry: bool = False,
) -> Result:
    """Put a skip around modules, M(x) → scale · I x + M(x).

    By default the factor is learned and starts at 0, so that a trained network does
    what it did.

    Args:
        model: Any network; not touched.
        batch: Runs it, as the instruments take batches.
        around: Paths of submodules that take and give one tensor.
        scale: Factor of I.
        learnable: Make the factor a parameter, one a skip, which starts at ``scale``.
        isometry: Where shapes change, put Haar details in place of zeros.

    Raises:
        SurgeryError: A module has no one input and output, or I cannot bridge them.
    """
    check_scale(scale)
    wanted = "are paths of submodules"
    paths = [around] if isinstance(around, str) else listed("around", around, wanted)
    if not paths or not all(isinstance(path, str) for path in paths):
        raise ConfigError(
            f"around is {around!r}, wanted are paths of submodules: pass for instance "
            "around=['features.3']"
        )
    operation = Operation("insert_skips", model, batch)
    for path in dict.fromkeys(paths):
        _insert(operation, path, scale, learnable, isometry)
    return operation.finish(unchanged=scale == 0)


def _insert(
    operation: Operation, path: str, scale: float, learnable: bool, isometry: bool
) -> None:
    given, gave = _ends(operation, path)
    values = operation.transcript.recording.values
    visits = operation.transcript.visits_of(path)
    straight = bridge(
        values[given].shape, values[gave].shape, named(path), isometry=isometry
    )
    module = operation.model.get_submodule(path)
    factor: Factor = free_name(module, "scale") if learnable else scale
    extras: dict[str, nn.Parameter | nn.Module] = {}
    if isinstance(factor, str):
        extras[factor] = learned(operation.model, scale)
    edit = VisitEdit(
        label=operation.label(),
        before=False,
        keys=(0,),
        edit=WithIdentity(straight, factor),
        keep=bool(set(visits) & operation.transcript.overwrites),
    )
    operation.attach(path, edit, extras)
    by = "" if scale == 1 and not learnable else f"{scale:g} "
    operation.note(path, "skip", "none", f"{by}{straight}")


def _ends(operation: Operation, path: str) -> tuple[int, int]:
    """Return what a module is given and gives, of all its runs alike."""
    transcript = operation.transcript
    visits = transcript.visits_of(path)
    if not path or not visits:
        ran = [v.module for v in transcript.recording.visits if v.module]
        raise SurgeryError(
            f"around={path!r} is no submodule that ran on the batch, wanted is one of "
            f"{', '.join(dict.fromkeys(ran)) or 'none'}"
        )
    ends = []
    for visit in visits:
        given, gave = transcript.given[visit].get(0), transcript.gave.get(visit, ())
        if given is None or not gave:
            raise SurgeryError(
                f"module {path!r} does not take a tensor as its first argument and "
                "return one, wanted is one that a skip can go around: name a submodule "
                "inside it"
            )
        ends.append((given, gave[0]))
    return ends[0]


def remove_skips(model: nn.Module, batch: Batch, *, which: Which = None) -> Result:
    """Take skips away: sums of skip and branches become sums of branches.

    The skip is replaced by zeros where it is added; the code around stays as it is.

    Args:
        model: Any network that anatomy understands; not touched.
        batch: Runs it, as the instruments take batches.
        which: Additions by number, or modules; by default all.

    Raises:
        SurgeryError: There is no skip, or its sum cannot be changed.
    """
    operation = Operation("remove_skips", model, batch)
    additions = operation.anatomy.additions
    spans = [(number, additions[number].skip) for number in chosen(additions, which)]

    def change(number: int, place: Place, span: Span) -> None:
        put_on(operation, place, Silenced())
        operation.note(place.path, "skip", span.kind, "none")

    on_operands(operation, spans, change, strict=which is not None)
    return operation.finish(none=no_skips(operation))


def no_skips(operation: Operation) -> str:
    """Say that a network has no residual addition, and what it has."""
    others = [other.kind for other in operation.anatomy.others]
    others += [each.reason for each in operation.anatomy.unplaced]
    told = ", ".join(dict.fromkeys(others)) or "nothing that joins tensors"
    return (
        f"the network has no residual addition ({told}), wanted is a skip that anatomy "
        "can tell from a branch: insert_skips adds some"
    )

"""Scale branches by a number or with depth, or make them start at zero."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import nn

from theodolite.anatomy import Addition, Recorder, Span, unfused
from theodolite.core import ConfigError, SurgeryError
from theodolite.instruments import Batch, measuring, preserve, run_model

from .branch_weights import adding_module, final_layers, is_fused
from .operation import Operation, Which, check_scale, selected
from .places import SumPlace, add_scale, edit_operands
from .result import Result
from .skips import no_skips_message

By = float | Sequence[float] | Literal["depth", "sqrt_depth"]
# How many of the last layers of a branch are tried, such as those before gates.
_TRIALS = 8
_DEPTHS: dict[str, Callable[[int], float]] = {
    "depth": lambda count: 1 / count,
    "sqrt_depth": lambda count: count**-0.5,
}


@measuring()
def scale_branches(
    model: nn.Module,
    batch: Batch,
    *,
    by: By,
    learnable: bool = False,
    which: Which = None,
) -> Result:
    r"""Scale branches where they are added, x + f(x) → x + by · f(x).

    Args:
        model: Any network that anatomy understands; not changed.
        batch: Batch to run it on, in any form that instruments accept.
        by: A number; a list of one per branch; or ``"depth"`` for $1/L$ and
            ``"sqrt_depth"`` for $1/\sqrt{L}$, of $L$ branches on the same level, which
            is the trunk or the inside of one branch.
        learnable: Make the factors parameters, one per branch, which start there.
        which: Additions by number, or modules; by default all.

    Raises:
        SurgeryError: There is no branch, or its sum cannot be changed.
    """
    operation = Operation("scale_branches", model, batch)
    spans = spans_of(operation, which)
    factors = _factors(by, operation, which)

    def change(number: int, place: SumPlace, span: Span) -> None:
        add_scale(operation, place, factors[number], learnable=learnable)
        kind = "learned, from " if learnable else ""
        operation.note(place.path, "branch", "1", f"{kind}{factors[number]:.4g}")

    edit_operands(operation, spans, change, strict=which is not None)
    plain = all(factor == 1 for factor in factors)
    return operation.finish(unchanged=plain, none=no_skips_message(operation))


@measuring()
def zero_branches(
    model: nn.Module,
    batch: Batch,
    *,
    how: Literal["weights", "scale"] = "weights",
    which: Which = None,
) -> Result:
    """Make branches start at zero, so that every block computes only its skip.

    Args:
        model: Any network that anatomy understands; not changed.
        batch: Batch to run it on, in any form that instruments accept.
        how: Write zeros into the last layer or norm of each branch (``"weights"``), or
            multiply each branch by a learned factor that starts at 0 (``"scale"``).
        which: Additions by number, or modules; by default all.

    Raises:
        SurgeryError: There is no branch, or zeros in its last layer do not make it 0.
    """
    operation = Operation("zero_branches", model, batch)
    spans = spans_of(operation, which)
    if how == "weights":
        _zero(operation, spans, strict=which is not None)
        return operation.finish(none=no_skips_message(operation))

    def change(number: int, place: SumPlace, span: Span) -> None:
        add_scale(operation, place, 0.0, learnable=True)
        operation.note(place.path, "branch", "1", "learned, from 0")

    edit_operands(operation, spans, change, strict=which is not None)
    return operation.finish(none=no_skips_message(operation))


def spans_of(operation: Operation, which: Which) -> list[tuple[int, Span]]:
    """List the branches of chosen additions, numbered among themselves."""
    additions: Sequence[Addition] = operation.anatomy.additions
    spans = [s for n in selected(additions, which) for s in additions[n].branches]
    return list(enumerate(spans))


def _factors(by: By, operation: Operation, which: Which) -> list[float]:
    additions = operation.anatomy.additions
    # The addition of each branch that is scaled.
    picked = [
        additions[n] for n in selected(additions, which) for _ in additions[n].branches
    ]
    if isinstance(by, str):
        if by not in _DEPTHS:
            raise ConfigError(
                f"by is {by!r}, wanted is a number, one per branch, 'depth' or "
                "'sqrt_depth'"
            )
        depths = Counter(a.inside for a in additions for _ in a.branches)
        return [_DEPTHS[by](depths[addition.inside]) for addition in picked]
    if isinstance(by, int | float):
        check_scale(by, "by")
        return [float(by)] * len(picked)
    factors = list(by)
    for factor in factors:
        check_scale(factor, "by")
    if len(factors) != len(picked):
        raise ConfigError(
            f"by holds {len(factors)} numbers, wanted is one for each of the "
            f"{len(picked)} branches: pass one number for all of them"
        )
    return [float(factor) for factor in factors]


def _zero(
    operation: Operation, spans: Sequence[tuple[int, Span]], *, strict: bool
) -> None:
    """Write zeros into the last layer of each branch that makes the branch zero."""
    recording = operation.trace.recording
    names, reasons = _search(operation, dict(spans))
    for number, span in spans:
        module = recording.calls[span.into].module
        if number not in names:
            if strict:
                raise reasons[number]
            operation.leave(module, "branch", "", reasons[number])
        for name in names.get(number, []):
            operation.write(name, torch.zeros((), device="cpu"))
            operation.note(module, name, "as it was", "0")


def _search(
    operation: Operation, spans: Mapping[int, Span]
) -> tuple[dict[int, list[str]], dict[int, SurgeryError]]:
    """Find parameters that make branches zero by trying, for all branches at once."""
    recording = operation.trace.recording
    left = {number: final_layers(recording, span) for number, span in spans.items()}
    reasons = {
        number: SurgeryError(
            f"the branch in {adding_module(recording, span)} has no layer whose zeros "
            "make it zero, wanted is one with weights, and nothing behind it that "
            "makes something of nothing: pass how='scale'"
        )
        for number, span in spans.items()
    }
    zeroing: dict[int, list[str]] = {}
    for _ in range(_TRIALS):
        tried: dict[int, list[str]] = {}
        for number in list(left):
            try:
                tried[number] = next(left[number])
            except StopIteration:
                del left[number]
            except SurgeryError as error:
                reasons[number] = error
                del left[number]
        if not tried:
            break
        zeros = [n for names in (*zeroing.values(), *tried.values()) for n in names]
        ended = _ended(operation, {n: spans[n] for n in tried}, zeros)
        zeroing |= {number: tried[number] for number in ended}
        left = {number: rest for number, rest in left.items() if number not in ended}
    # Zeros that did not work and were undone may have made other branches zero.
    zeros = [name for names in zeroing.values() for name in names]
    sure = (
        _ended(operation, {n: spans[n] for n in zeroing}, zeros) if zeroing else set()
    )
    return {number: zeroing[number] for number in sorted(sure)}, reasons


def _ended(
    operation: Operation, spans: Mapping[int, Span], zeros: Sequence[str]
) -> set[int]:
    """Return the branches that add nothing on the batch with some parameters zero."""
    calls, model = operation.trace.recording.calls, operation.model
    ended: set[int] = set()

    def look(index: int, operator: Any, args: tuple, kwargs: dict) -> Any:
        for number, span in spans.items():
            if index == span.into:
                added = args[span.position]
                if is_fused(calls[index], span):
                    added = operator(torch.zeros_like(args[0]), *args[1:], **kwargs)
                if not bool(added.detach().any()):
                    ended.add(number)
        return operator(*args, **kwargs)

    with preserve(model), torch.no_grad():
        for name in zeros:
            model.get_parameter(name).zero_()
        with unfused(model), Recorder(model, act=look):
            run_model(model, operation.batch)
    return ended

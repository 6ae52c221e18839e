"""Initialisation of residual networks without norms, by depth."""

from collections import Counter

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.anatomy import Span
from theodolite.core import SurgeryError, stream
from theodolite.instruments import Batch, measuring

from .altered import ModuleEdit
from .attaching import describe, free_name, learnable_number
from .branch_weights import last_weights, linear_weights
from .edits import ShiftEdit
from .operation import Operation, Which, selected
from .places import SumPlace, add_scale, edit_operands
from .result import Result
from .skips import no_skips_message

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@measuring()
def fixup(
    model: nn.Module,
    batch: Batch,
    *,
    seed: int,
    scalars: bool = True,
    head: bool = True,
    which: Which = None,
) -> Result:
    r"""Initialise branches with Fixup, which makes norms unnecessary.

    Of $L$ branches on a level, one with $m$ linear layers has its last set to 0 and
    the others drawn normal with variance $2/\text{fan}_{in} \cdot L^{-1/(m-1)}$, that
    is, He's standard deviation times $L^{-1/(2m-2)}$; biases in branches become 0.

    Departures: scalar shifts are added before linear layers that are modules, and not
    before activations, where the biases of layers have the same effect.

    Args:
        model: Any network that anatomy understands, without norms in its branches; not
            changed.
        batch: Batch to run it on, in any form that instruments accept.
        seed: Seed of the weights.
        scalars: Add a learned factor, from 1, to each branch, and a learned shift, from
            0, to the input of each of its layers.
        head: Set the last linear layer behind all sums to 0 as well.
        which: Additions by number, or modules; by default all.

    Raises:
        SurgeryError: There is no branch, or one holds norms.

    References:
        Zhang, Dauphin & Ma (2019), Fixup Initialization, sec. 3.
    """
    operation = Operation("fixup", model, batch)
    additions = operation.anatomy.additions
    picked = selected(additions, which)
    for norm in operation.anatomy.norms:
        if norm.addition in picked and norm.placement in ("pre", "inside"):
            raise SurgeryError(
                f"a branch holds a norm in {describe(norm.module)}, wanted is none, "
                "since fixup stands in its place: change_norms(…, to='none') first"
            )
    rng = stream(seed)
    depths = Counter(a.inside for a in additions for _ in a.branches)
    spans: list[tuple[int, Span]] = []
    for number in picked:
        for span in additions[number].branches:
            spans.append((len(spans), span))
            names = _own(operation, span)
            _draw(operation, span, names, depths[additions[number].inside], rng)
            if scalars:
                _shift(operation, names)

    def change(number: int, place: SumPlace, span: Span) -> None:
        add_scale(operation, place, 1.0, learnable=True)
        operation.note(place.path, "branch", "1", "learned, from 1")

    if scalars:
        edit_operands(operation, spans, change, strict=which is not None)
    if head and picked:
        _zero_head(operation)
    return operation.finish(none=no_skips_message(operation))


def _own(operation: Operation, span: Span) -> list[str]:
    """Return the weights of a branch without those of branches inside it."""
    recording = operation.trace.recording
    inner: set[str] = set()
    for addition in operation.anatomy.additions:
        if addition.inside is not None and addition.call in span.calls:
            for branch in addition.branches:
                inner |= set(linear_weights(recording, branch))
    return [name for name in linear_weights(recording, span) if name not in inner]


def _draw(
    operation: Operation,
    span: Span,
    names: list[str],
    depth: int,
    rng: np.random.Generator,
) -> None:
    """Draw the weights of a branch; the last are 0, and so are biases."""
    module = operation.trace.recording.calls[span.into].module
    if not names:
        operation.leave(module, "branch", "", "it has no linear layer with weights")
        return
    for name in names[:-1]:
        parameter = operation.model.get_parameter(name)
        spread = (2 / _fan_in(parameter, name, operation.model)) ** 0.5
        spread *= depth ** (-1 / (2 * len(names) - 2))
        drawn = torch.from_numpy(spread * rng.normal(size=tuple(parameter.shape)))
        operation.write(name, drawn)
        operation.note(module, name, "as it was", f"normal, {spread:.4g}")
    operation.write(names[-1], torch.zeros((), device="cpu"))
    operation.note(module, names[-1], "as it was", "0")
    known = dict(operation.model.named_parameters())
    for name in names:
        bias = f"{name.rpartition('.')[0]}.bias".lstrip(".")
        if name.endswith("weight") and bias in known:
            operation.write(bias, torch.zeros((), device="cpu"))


def _fan_in(parameter: Tensor, name: str, model: nn.Module) -> int:
    """Return the fan-in: the number of inputs of one output."""
    owner = model.get_submodule(name.rpartition(".")[0])
    if isinstance(owner, LAYERS):
        return parameter[0].numel()
    return parameter.shape[0] if parameter.ndim == 2 else parameter[0].numel()


def _shift(operation: Operation, names: list[str]) -> None:
    """Put a learned shift on the input of each linear layer that is a module."""
    for name in names:
        path = name.rpartition(".")[0]
        visits = operation.trace.visits_of(path)
        if not path or len(visits) != 1 or 0 not in operation.trace.given[visits[0]]:
            continue
        module = operation.model.get_submodule(path)
        if not isinstance(module, LAYERS):
            continue
        own = free_name(module, "shift")
        edit = ModuleEdit(
            label=operation.label(), before=True, keys=(0,), edit=ShiftEdit(own)
        )
        operation.attach(path, edit, {own: learnable_number(operation.model, 0.0)})
        operation.note(path, "input", "x", "x + a learned number, from 0")


def _zero_head(operation: Operation) -> None:
    """Set the last linear layer behind all sums to zero."""
    last = operation.anatomy.additions[-1].call
    try:
        names = last_weights(operation.trace.recording, behind=last)
    except SurgeryError as error:
        operation.leave("", "head", "", error)
        return
    if not names:
        operation.leave("", "head", "", "no linear layer follows the last sum")
    for name in names:
        operation.write(name, torch.zeros((), device="cpu"))
        operation.note("", name, "as it was", "0")

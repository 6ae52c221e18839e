"""A table of a network's blocks or layers: what torchinfo shows, and what flows there.

MACs (multiplications with an addition) are half the FLOPs of torch's formulas for
matrix products and convolutions, applied to the recorded calls.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from torch import nn
from torch.utils.flop_counter import flop_registry

from theodolite.core import MeasurementError, NormMode, Rows, norm_words
from theodolite.instruments import Batches, Loss, Problem, preserve_process

from .activation_hooks import OtherWayError
from .block_map import (
    RESHAPING,
    BlockMap,
    BlockSpan,
    block_map_of,
    fed_by_inputs,
    first_uses,
    handed_on,
    homes,
    named_apart,
)
from .first_pass import run_first_pass
from .layer_table import LayerTable
from .opened import OpenedModel, opened_model
from .parts import Block
from .recording import Call, Recording, Ref

_FORMULAS = {str(packet): formula for packet, formula in flop_registry.items()}
# Calls of a module that has no row if it makes no others.
_MOVING = RESHAPING | set("detach split select slice expand chunk unbind".split())


@preserve_process()
def summary(
    model: nn.Module | Problem,
    batches: Batches | None = None,
    *,
    loss: Loss | None = None,
    norm_mode: NormMode | str | None = None,
    layers: bool = False,
    seed: int = 0,
) -> LayerTable:
    """Return a table with one row per block: shapes, costs, signals, dead units, norms.

    It takes one pass over the first batch; a few of its samples are recorded before.
    Signals and gradients are those of the block's output, which is the sum of skip and
    branches in a residual block. The model is never changed.

    Args:
        model: Any module; or a ``Problem``, which holds data and settings.
        batches: Inputs, a pair (inputs, targets) or a mapping, or a list or DataLoader
            of them, of which the first is used.
        loss: A torch loss, or a function of outputs and targets. Without one, the table
            has no gradients, except if the batch has ``labels`` and the model returns
            its loss.
        norm_mode: Statistics that normalisation layers use; by default each layer keeps
            its mode.
        layers: Whether to give one row per call of a module in place of a block. A
            module that calls others has a row for what it computes itself. A network
            in which no blocks are found gets these rows in any case.
        seed: Seed of random numbers in the model.

    Returns:
        The table; print it, or call ``to_pandas()``.

    Raises:
        MeasurementError: The model does not run on the batch.

    Example:
        >>> import torch
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> table = summary(net, torch.ones(2, 4))
        >>> table.rows().column("macs"), table.n_parameters
        ([32.0, 24.0], 67)
    """
    if not isinstance(model, Problem):
        mode = NormMode.AS_IS if norm_mode is None else norm_mode
        model = Problem(model, batches, loss=loss, norm_mode=mode, seed=seed)
    elif batches is not None or loss is not None or norm_mode is not None:
        raise MeasurementError(
            "a Problem came with batches, a loss or a norm mode, and has its own: "
            "leave them out, or pass dataclasses.replace(problem, batches=…)"
        )
    with opened_model(model) as held:
        block_map = held.block_map
        if held.unmapped:
            raise MeasurementError(held.unmapped)
        try:
            rows = _rows(held, block_map, layers)
        except OtherWayError:  # where samples are not the first axis, sizes matter
            rows = _rows(held, block_map_of(held.model, held.batch), layers)
        notes = tuple(held.unsupported)
        if held.random_layers_off:
            notes += ("random layers such as dropout are off, by eval mode",)
        mode, parameters = held.problem.mode, list(held.model.parameters())
        # Layer norms have one mode.
        modal = mode is not NormMode.AS_IS or any(held.norm_layers.values())
        return LayerTable(
            title=type(held.model).__name__,
            table=Rows(rows),
            n_parameters=sum(p.numel() for p in parameters),
            n_trained=sum(p.numel() for p in parameters if p.requires_grad),
            samples=held.samples,
            norms=norm_words(str(mode), held.norm_layers) if modal else "",
            notes=notes,
        )


def _by_layer(block_map: BlockMap) -> tuple[BlockMap, Callable[[int], int]]:
    """Return a map with one span per visit of a module that computes something."""
    recording = block_map.anatomy.recording
    fed, read_by = fed_by_inputs(recording), dict[int, set[int]]()
    calls: dict[int, list[Call]] = {}
    for call in recording.calls:
        for number in call.inputs:
            read_by.setdefault(number, set()).add(call.visit)
        if fed & set(call.outputs):
            calls.setdefault(call.visit, []).append(call)
    spans, row_of = list[BlockSpan](), dict[int, int]()
    for visit, own in calls.items():
        if all(call.name in _MOVING for call in own):
            continue
        outputs = [n for call in own for n in call.outputs]
        outside = [
            n
            for n in outputs
            if n in recording.outputs or read_by.get(n, set()) - {visit}
        ]
        sizes = {n: math.prod(recording.values[n].shape) for n in outside}
        output = max(reversed(outside), key=sizes.__getitem__, default=outputs[-1])
        output = handed_on(recording, output, block_map.places)
        kind, name = recording.visits[visit].kind, own[0].module or "(model)"
        row_of[visit] = len(spans)
        block = Block(index=len(spans), name=name, kind=kind)
        spans.append(
            BlockSpan(block=block, entry=output, output=output, start=own[0].index)
        )

    def home(call: int) -> int:
        before = [row for row, span in enumerate(spans) if span.start <= call]
        visit = recording.calls[call].visit
        return row_of.get(visit, max(before, default=0))

    return replace(block_map, spans=tuple(named_apart(spans))), home


def _rows(held: OpenedModel, block_map: BlockMap, layers: bool) -> list[dict[str, Any]]:
    problem, batch = held.problem, held.batch
    home = homes(block_map.anatomy, list(block_map.spans))
    if layers or not block_map.spans:
        block_map, home = _by_layer(block_map)
    own = isinstance(batch, Mapping) and "labels" in batch
    with_loss = own or problem.loss is not None or problem.output_loss is not None
    first_pass = run_first_pass(problem, batch, block_map=block_map, backward=with_loss)
    recording, missing = block_map.anatomy.recording, (math.nan, math.nan)
    rows: list[dict[str, Any]] = []
    for span in block_map.spans:
        signal = first_pass.forward.get(span.output)
        rms = (signal.rms, signal.rms_error) if signal else missing
        shape = recording.values[span.output].shape
        row = {"name": span.block.name, "kind": span.block.kind, "shape": shape[1:]}
        row |= {"parameters": 0, "macs": 0.0, "signal": rms[0], "signal_error": rms[1]}
        if with_loss:
            rms = first_pass.backward.get(span.output, missing)
            row |= {"gradient": rms[0], "gradient_error": rms[1]}
        rows.append(row)
    if not rows:
        return rows
    sizes = {name: p.numel() for name, p in held.model.named_parameters()}
    for name, call in first_uses(recording).items():
        rows[home(call)]["parameters"] += sizes.get(name, 0)
    for call in recording.calls:
        rows[home(call.index)]["macs"] += macs_of(call, recording) / block_map.samples
    for activation in block_map.anatomy.activations:
        counts = first_pass.units.get(recording.calls[activation.call].outputs[0])
        if counts is not None:
            row = rows[home(activation.call)]
            row["units"] = row.get("units", 0) + counts.units
            row["dead_units"] = row.get("dead_units", 0) + counts.dead
            # The rule of three: how many of them other samples may activate.
            row["dead_error"] = row["dead_units"] * min(3 / first_pass.samples, 1)
    for norm in block_map.anatomy.norms:
        given, row = first_pass.norms.get(norm.module), rows[home(norm.call)]
        if given and not given.spread >= row.get("norm_spread", math.inf):
            row["norm_spread"], row["norm_error"] = given.spread, given.spread_error
            row["norm_numbers"] = given.numbers
    return rows


def macs_of(call: Call, recording: Recording) -> float:
    """Return the multiply-accumulate operations of a call, NaN if they are unknown."""

    def shape(argument: Any) -> Any:
        is_tensor = isinstance(argument, Ref)
        return recording.values[argument.number].shape if is_tensor else argument

    if call.name in _OTHERS:
        sizes = [math.prod(recording.values[n].shape) for n in call.inputs]
        return _OTHERS[call.name](sizes, [shape(n) for n in call.arguments])
    formula = _FORMULAS.get(call.operator.rpartition(".")[0])
    if formula is None:
        aten = call.operator.startswith(("aten.", "prims."))
        return 0 if aten and "rnn" not in call.name else math.nan
    options = {name: shape(value) for name, value in call.options}
    output = recording.values[call.outputs[0]].shape
    return formula(*map(shape, call.arguments), **options, out_val=output) // 2


# Products for which torch has no formula: from the sizes of inputs, and the arguments.
_OTHERS: dict[str, Callable[[list[int], list[Any]], int]] = {
    "mv": lambda sizes, _: sizes[0],
    "addmv": lambda sizes, _: sizes[1],
    "dot": lambda sizes, _: sizes[0],
    # Of nn.Bilinear: each weight once per sample.
    "_trilinear": lambda sizes, given: sizes[1] * math.prod(given[0][:-1]),
    # Of nn.LSTM: both weight matrices at each step of each sample.
    "mkldnn_rnn_layer": lambda sizes, given: (
        math.prod(given[0][:-1]) * (sizes[1] + sizes[2])
    ),
}

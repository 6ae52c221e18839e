"""Signals of one forward pass without gradients."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import NormMode
from theodolite.instruments import (
    Loss,
    apply_norm_mode,
    evaluate,
    opened,
    run_model,
    samples_in,
)

from ..measures.charting import Chart
from ..measures.gauges import UnitCounts, squares_of, unit_counts
from ..measures.random_layers import switch_off_random_layers
from ..measures.taps import Action, Place, Taps

Found = dict[str, Any]


@dataclass(kw_only=True, eq=False)
class Glimpse:
    """The signals of one forward pass.

    Attributes:
        samples: Number of samples.
        rms: Root mean square of each value that was tapped, and its error.
        units: Counts of the units of each activation.
    """

    samples: int
    rms: dict[int, tuple[float, float]] = field(default_factory=dict)
    units: dict[int, UnitCounts] = field(default_factory=dict)

    def sizes(self, chart: Chart) -> Iterator[Found]:
        """Yield the size of each block's output."""
        for stretch in chart.stretches:
            if stretch.output in self.rms:
                value, error = self.rms[stretch.output]
                yield _row("forward_rms", value, error, **_at(stretch.block))

    def gains(self, chart: Chart) -> Iterator[Found]:
        """Yield the size of each block's branches over that of its skip."""
        for stretch in chart.stretches:
            if stretch.block.addition is None:
                continue
            addition = chart.anatomy.additions[stretch.block.addition]
            skip = self.rms.get(addition.skip.exit) or self.rms.get(addition.fork)
            branches = [self.rms.get(branch.exit) for branch in addition.branches]
            known = [one for one in branches if one is not None]
            if skip is None or not skip[0] or len(known) < len(branches):
                continue
            gain = math.hypot(*(value for value, _ in known)) / skip[0]
            spread = math.hypot(*(error for _, error in known))
            error = math.hypot(spread, gain * skip[1]) / skip[0]
            yield _row("branch_gain", gain, error, **_at(stretch.block))

    def dead(self, chart: Chart) -> Iterator[Found]:
        """Yield the share of each activation's units that no sample activates.

        A unit that is active on a share $3/n$ of all data stays zero on $n$ samples
        with probability 5 %; so the error is $3/n$.
        """
        seen: dict[str, int] = {}
        for activation in chart.anatomy.activations:
            call = chart.anatomy.recording.calls[activation.call]
            counts = self.units.get(call.outputs[0])
            if counts is None:
                continue
            name = activation.module or "the model"
            seen[name] = seen.get(name, 0) + 1
            name = name if seen[name] == 1 else f"{name}#{seen[name]}"
            share = counts.dead / max(counts.units, 1)
            error = min(share, 3 * share / self.samples)
            yield _row("dead_share", share, error, module=name)


def glimpse(
    model: nn.Module, batch: Any, *, chart: Chart, norm_mode: NormMode
) -> Glimpse:
    """Run a model forward once, and return its signals; it is not changed.

    Args:
        model: The model.
        batch: The samples.
        chart: Map of the model, with the values to measure.
        norm_mode: Statistics that normalisation layers use.
    """
    seen = Glimpse(samples=samples_in(batch) or 1)
    taps = Taps(_actions(chart, seen), chart.shapes)
    with opened(model, careful=False) as before, torch.no_grad():
        before.lend_buffers()
        switch_off_random_layers(model, batch, norm_mode)
        apply_norm_mode(model, norm_mode, lambda: run_model(model, batch))
        with taps.during(model):
            run_model(model, batch)
    return seen


def loss_on(model: nn.Module, batch: Any, *, loss: Loss, norm_mode: NormMode) -> Tensor:
    """Return the loss of a batch with dropout and other random layers off."""
    with opened(model, careful=False) as before, torch.no_grad():
        before.lend_buffers()
        switch_off_random_layers(model, batch, norm_mode)
        apply_norm_mode(model, norm_mode, lambda: run_model(model, batch))
        return evaluate(model, batch, loss)


def _actions(chart: Chart, seen: Glimpse) -> dict[Place, Action]:
    wanted: dict[int, list[Callable[[Tensor], None]]] = {}
    for number in _ends(chart):
        wanted.setdefault(number, []).append(_size(seen, number))
    for activation in chart.anatomy.activations:
        number = chart.anatomy.recording.calls[activation.call].outputs[0]
        wanted.setdefault(number, []).append(_units(seen, number, activation.kind))
    return {
        chart.places[number]: _together(looks)
        for number, looks in wanted.items()
        if number in chart.places
    }


def _ends(chart: Chart) -> set[int]:
    """Return the values that leave blocks, skips and branches."""
    numbers = {stretch.output for stretch in chart.stretches}
    for addition in chart.anatomy.additions:
        spans = (addition.skip, *addition.branches)
        numbers |= {addition.fork, *(span.exit for span in spans)}
    return numbers


def _size(seen: Glimpse, number: int) -> Callable[[Tensor], None]:
    def look(tensor: Tensor) -> None:
        seen.rms[number] = squares_of(tensor.detach(), seen.samples)

    return look


def _units(seen: Glimpse, number: int, kind: str) -> Callable[[Tensor], None]:
    def look(tensor: Tensor) -> None:
        seen.units[number] = unit_counts(tensor.detach(), kind)

    return look


def _together(looks: list[Callable[[Tensor], None]]) -> Action:
    def act(tensor: Tensor) -> None:
        for look in looks:
            look(tensor)

    return act


def _at(block: Any) -> Found:
    return {"block": block.name, "depth": block.index}


def _row(quantity: str, value: float, error: float, **labels: Any) -> Found:
    finite = error if math.isfinite(error) else None
    return {"quantity": quantity, "value": value, "error": finite, **labels}

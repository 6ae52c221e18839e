"""One gradient pass of a batch, and statistics of the signals in it.

Forward and backward signals at the ends of every stretch, outputs of activations,
inputs of norms and the gradient of every parameter come from the same pass.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from theodolite.core import MeasurementError
from theodolite.instruments import (
    Batch,
    Problem,
    apply_norm_mode,
    evaluate,
    opened,
    run_model,
    samples_in,
)

from .charting import Chart, convolved
from .gauges import (
    NormIntake,
    Signal,
    UnitCounts,
    norm_intake,
    signal_of,
    squares_of,
    unit_counts,
)
from .gradients import settle
from .taps import Action, Place, Taps

_NORMS = (
    nn.modules.batchnorm._BatchNorm,
    nn.modules.instancenorm._InstanceNorm,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
)


@dataclass(kw_only=True)
class Sounding:
    """Statistics of one gradient pass.

    Attributes:
        samples: Number of samples.
        seconds: Time of the pass, for the announcement alone.
        loss: The loss.
        gradients: Gradient of each parameter, by its name.
        forward: Signal of each value that was tapped, by its number.
        backward: Root mean square of the loss's derivative by it, and its error.
        units: Counts of each activation's units, by the number of its value.
        norms: Statistics of each norm layer's input, by its name.
        outputs: Logits, without their graph.
    """

    samples: int
    seconds: float = 0.0
    loss: float = math.nan
    gradients: dict[str, Tensor] = field(default_factory=dict)
    forward: dict[int, Signal] = field(default_factory=dict)
    backward: dict[int, tuple[float, float]] = field(default_factory=dict)
    units: dict[int, UnitCounts] = field(default_factory=dict)
    norms: dict[str, NormIntake] = field(default_factory=dict)
    outputs: Any = None


def sound(problem: Problem, batch: Batch, *, chart: Chart) -> Sounding:
    """Return statistics of one forward and backward pass; the model is not changed.

    Args:
        problem: The model, its loss and its norm mode.
        batch: The samples.
        chart: Map of the model, with the values to measure.

    Raises:
        MeasurementError: The loss depends on no parameter.
    """
    model, sounding = problem.model, Sounding(samples=samples_in(batch) or 1)
    taps = Taps(_actions(chart, sounding), chart.shapes)
    start = time.perf_counter()
    with opened(model, careful=False) as before:
        before.lend_buffers()
        apply_norm_mode(model, problem.mode, lambda: run_model(model, batch))
        _watch_norms(model, sounding, taps)
        model.register_forward_pre_hook(
            lambda *given: _look_at_inputs(chart, sounding, taps, given),
            with_kwargs=True,
        )
        model.register_forward_hook(lambda *given: _keep(sounding, given[-1]))
        with taps.during(model):
            value = evaluate(model, batch, problem.criterion)
        names, leaves = _leaves(model)
        if not value.requires_grad:
            raise MeasurementError(
                "the loss depends on no parameter that requires a gradient: unfreeze "
                "some, and look for detach() and no_grad()"
            )
        grads = torch.autograd.grad(value, leaves, allow_unused=True)
    sounding.loss = float(value.detach())
    pairs = zip(names, leaves, grads, strict=True)
    sounding.gradients = {
        name: torch.zeros_like(leaf) if grad is None else grad.detach()
        for name, leaf, grad in pairs
    }
    settle(value.device)
    sounding.seconds = time.perf_counter() - start
    return sounding


def _leaves(model: nn.Module) -> tuple[list[str], list[Tensor]]:
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return [name for name, _ in named], [parameter for _, parameter in named]


def _keep(sounding: Sounding, outputs: Any) -> None:
    if sounding.outputs is None:
        sounding.outputs = outputs


def _look_at_inputs(chart: Chart, sounding: Sounding, taps: Taps, given: Any) -> None:
    """Record signals of blocks that read the model's inputs."""
    recording = chart.anatomy.recording
    leaves = [leaf for leaf in tree_leaves(given[1:]) if isinstance(leaf, Tensor)]
    real = [leaf for leaf in leaves if leaf.is_floating_point()]
    for number in _signals(chart):
        value = recording.values[number]
        if value.source == "input" and number not in sounding.forward:
            for leaf in real:
                if tuple(leaf.shape[1:]) == value.shape[1:]:
                    with taps.paused():
                        sounding.forward[number] = signal_of(
                            leaf.detach(), sounding.samples
                        )
                    break


def _actions(chart: Chart, sounding: Sounding) -> dict[Place, Action]:
    """Return what to measure at each place."""
    wanted: dict[int, list[Callable[[Tensor], None]]] = {}
    for number in _signals(chart):
        wanted.setdefault(number, []).append(_signal_gauge(sounding, number))
    for activation in chart.anatomy.activations:
        call = chart.anatomy.recording.calls[activation.call]
        axis = 1 if convolved(chart.anatomy.recording, call) else None
        gauge = _unit_gauge(sounding, call.outputs[0], activation.kind, axis)
        wanted.setdefault(call.outputs[0], []).append(gauge)
    return {
        chart.places[number]: _together(gauges)
        for number, gauges in wanted.items()
        if number in chart.places
    }


def _signals(chart: Chart) -> set[int]:
    """Return the values at the ends of stretches, skips and branches."""
    numbers: set[int] = set()
    for stretch in chart.stretches:
        numbers |= {stretch.entry, stretch.output}
    for addition in chart.anatomy.additions:
        numbers |= {span.exit for span in (addition.skip, *addition.branches)}
    return numbers


def _together(gauges: list[Callable[[Tensor], None]]) -> Action:
    def act(tensor: Tensor) -> None:
        for gauge in gauges:
            gauge(tensor)

    return act


def _signal_gauge(sounding: Sounding, number: int) -> Callable[[Tensor], None]:
    def note(gradient: Tensor) -> None:
        sounding.backward[number] = squares_of(gradient.detach(), sounding.samples)

    def look(tensor: Tensor) -> None:
        sounding.forward[number] = signal_of(tensor.detach(), sounding.samples)
        if tensor.requires_grad:
            tensor.register_hook(note)

    return look


def _unit_gauge(
    sounding: Sounding, number: int, kind: str, axis: int | None
) -> Callable[[Tensor], None]:
    def look(tensor: Tensor) -> None:
        sounding.units[number] = unit_counts(tensor.detach(), kind, axis)

    return look


def _watch_norms(model: nn.Module, sounding: Sounding, taps: Taps) -> None:
    """Record inputs of norm layers by hooks, removed when the model is restored."""
    for name, module in model.named_modules():
        if isinstance(module, _NORMS):
            module.register_forward_pre_hook(_norm_hook(sounding, taps, name))


def _norm_hook(sounding: Sounding, taps: Taps, name: str) -> Callable[..., None]:
    def look(module: nn.Module, args: tuple[Any, ...]) -> None:
        if args and isinstance(args[0], Tensor) and name not in sounding.norms:
            with taps.paused():
                intake = norm_intake(module, args[0].detach(), sounding.samples)
            sounding.norms[name] = intake

    return look

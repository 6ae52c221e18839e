"""One gradient pass of a batch, and statistics of the signals in it.

Forward and backward signals at the ends of every block, outputs of activations,
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

from .activation_hooks import Action, ActivationHooks, Place
from .block_map import BlockMap, convolved
from .tensor_statistics import (
    NormInput,
    Signal,
    UnitCounts,
    norm_input,
    signal_of,
    squares_of,
    unit_counts,
)

_NORMS = (
    nn.modules.batchnorm._BatchNorm,
    nn.modules.instancenorm._InstanceNorm,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
)


@dataclass(kw_only=True)
class FirstPass:
    """Statistics of one gradient pass.

    Attributes:
        samples: Number of samples.
        seconds: Time of the pass, for the announcement alone.
        loss: The loss.
        gradients: Gradient of each parameter, by its name.
        forward: Signal of each value that was hooked, by its number.
        backward: Root mean square of the loss's derivative by it, and its error.
        units: Counts of each activation's units, by the number of its value.
        norms: What each norm layer computes its statistics from, by its name.
        outputs: Logits, without their graph.
    """

    samples: int
    seconds: float = 0.0
    loss: float = math.nan
    gradients: dict[str, Tensor] = field(default_factory=dict)
    forward: dict[int, Signal] = field(default_factory=dict)
    backward: dict[int, tuple[float, float]] = field(default_factory=dict)
    units: dict[int, UnitCounts] = field(default_factory=dict)
    norms: dict[str, NormInput] = field(default_factory=dict)
    outputs: Any = None


def run_first_pass(
    problem: Problem, batch: Batch, *, block_map: BlockMap, backward: bool = True
) -> FirstPass:
    """Return statistics of one forward and backward pass; the model is not changed.

    Args:
        problem: The model, its loss and its norm mode.
        batch: The samples.
        block_map: Map of the model, with the values to measure.
        backward: Whether to compute the loss and its gradient, or only signals.

    Raises:
        MeasurementError: The loss depends on no parameter.
    """
    model, first_pass = problem.model, FirstPass(samples=samples_in(batch) or 1)
    hooks = ActivationHooks(_actions(block_map, first_pass), block_map.shapes)
    start = time.perf_counter()
    with opened(model, careful=False) as before:
        before.lend_buffers()
        apply_norm_mode(model, problem.mode, lambda: run_model(model, batch))
        _watch_norms(model, first_pass, hooks)
        model.register_forward_pre_hook(
            lambda *given: _look_at_inputs(block_map, first_pass, hooks, given),
            with_kwargs=True,
        )
        model.register_forward_hook(lambda *given: _keep(first_pass, given[-1]))
        with hooks.during(model), torch.set_grad_enabled(backward):
            if not backward:
                run_model(model, batch)
                return first_pass
            value = evaluate(model, batch, problem.criterion)
        names, leaves = _leaves(model)
        if not value.requires_grad:
            raise MeasurementError(
                "the loss depends on no parameter that requires a gradient: unfreeze "
                "some, and look for detach() and no_grad()"
            )
        grads = torch.autograd.grad(value, leaves, allow_unused=True)
    first_pass.loss = float(value.detach())
    pairs = zip(names, leaves, grads, strict=True)
    first_pass.gradients = {
        name: torch.zeros_like(leaf) if grad is None else grad.detach()
        for name, leaf, grad in pairs
    }
    if value.device.type == "cuda":  # else the time would end before the work
        torch.cuda.synchronize(value.device)
    first_pass.seconds = time.perf_counter() - start
    return first_pass


def _leaves(model: nn.Module) -> tuple[list[str], list[Tensor]]:
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return [name for name, _ in named], [parameter for _, parameter in named]


def _keep(first_pass: FirstPass, outputs: Any) -> None:
    if first_pass.outputs is None:
        first_pass.outputs = outputs


def _look_at_inputs(
    block_map: BlockMap, first_pass: FirstPass, hooks: ActivationHooks, given: Any
) -> None:
    """Record signals of blocks that read the model's inputs."""
    recording = block_map.anatomy.recording
    leaves = [leaf for leaf in tree_leaves(given[1:]) if isinstance(leaf, Tensor)]
    real = [leaf for leaf in leaves if leaf.is_floating_point()]
    for number in _signals(block_map):
        value = recording.values[number]
        if value.source == "input" and number not in first_pass.forward:
            for leaf in real:
                if tuple(leaf.shape[1:]) == value.shape[1:]:
                    with hooks.paused():
                        first_pass.forward[number] = signal_of(
                            leaf.detach(), first_pass.samples
                        )
                    break


def _actions(block_map: BlockMap, first_pass: FirstPass) -> dict[Place, Action]:
    """Return what to measure at each place."""
    wanted: dict[int, list[Callable[[Tensor], None]]] = {}
    for number in _signals(block_map):
        wanted.setdefault(number, []).append(_signal_reader(first_pass, number))
    for activation in block_map.anatomy.activations:
        call = block_map.anatomy.recording.calls[activation.call]
        axis = 1 if convolved(block_map.anatomy.recording, call) else None
        reader = _unit_reader(first_pass, call.outputs[0], activation.kind, axis)
        wanted.setdefault(call.outputs[0], []).append(reader)
    return {
        block_map.places[number]: _together(readers)
        for number, readers in wanted.items()
        if number in block_map.places
    }


def _signals(block_map: BlockMap) -> set[int]:
    """Return the values at the ends of blocks, skips and branches."""
    numbers: set[int] = set()
    for block_span in block_map.spans:
        numbers |= {block_span.entry, block_span.output}
    for addition in block_map.anatomy.additions:
        numbers |= {span.exit for span in (addition.skip, *addition.branches)}
    return numbers


def _together(readers: list[Callable[[Tensor], None]]) -> Action:
    def act(tensor: Tensor) -> None:
        for reader in readers:
            reader(tensor)

    return act


def _signal_reader(first_pass: FirstPass, number: int) -> Callable[[Tensor], None]:
    def note(gradient: Tensor) -> None:
        first_pass.backward[number] = squares_of(gradient.detach(), first_pass.samples)

    def look(tensor: Tensor) -> None:
        first_pass.forward[number] = signal_of(tensor.detach(), first_pass.samples)
        if tensor.requires_grad:
            tensor.register_hook(note)

    return look


def _unit_reader(
    first_pass: FirstPass, number: int, kind: str, axis: int | None
) -> Callable[[Tensor], None]:
    def look(tensor: Tensor) -> None:
        first_pass.units[number] = unit_counts(tensor.detach(), kind, axis)

    return look


def _watch_norms(
    model: nn.Module, first_pass: FirstPass, hooks: ActivationHooks
) -> None:
    """Record inputs of norm layers by hooks, removed when the model is restored."""
    for name, module in model.named_modules():
        if isinstance(module, _NORMS):
            module.register_forward_pre_hook(_norm_hook(first_pass, name, hooks))


def _norm_hook(
    first_pass: FirstPass, name: str, hooks: ActivationHooks
) -> Callable[..., None]:
    def look(module: nn.Module, args: tuple[Any, ...]) -> None:
        if args and isinstance(args[0], Tensor) and name not in first_pass.norms:
            with hooks.paused():
                first_pass.norms[name] = norm_input(
                    module, args[0].detach(), first_pass.samples
                )

    return look

"""Run a network forwards and backwards on a batch, and compare."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import SurgeryError
from theodolite.instruments import Batch, preserve, run_model
from theodolite.surgery.result import Check


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One pass forwards and backwards.

    Attributes:
        outputs: Tensors of numbers that the model returned.
        gradient: Norm of the gradient by all parameters, NaN if the network cannot be
            differentiated at all.
        reached: Parameters that got a gradient.
        unreached: Those that require one and got none.
        parameters: How many numbers are learned.
    """

    outputs: tuple[Tensor, ...]
    gradient: float
    reached: frozenset[str]
    unreached: frozenset[str]
    parameters: int


def run_both_ways(model: nn.Module, batch: Batch) -> Pass:
    """Run a model forwards and backwards on a batch; it is left as found."""
    with preserve(model), torch.enable_grad(), _in_full_precision():
        model.zero_grad(set_to_none=True)
        outputs = _numbers(run_model(model, batch))
        loss = sum((_weighed(output) for output in outputs), torch.zeros(()))
        failed = _backward(loss)
        named = dict(model.named_parameters())
        grads = {n: p.grad for n, p in named.items() if p.grad is not None}
        total = math.fsum(float(g.double().square().sum()) for g in grads.values())
        wanted = {n for n, p in named.items() if p.requires_grad}
        return Pass(
            outputs=tuple(output.detach().clone() for output in outputs),
            gradient=math.nan if failed else math.sqrt(total),
            reached=frozenset(grads),
            unreached=frozenset(wanted - set(grads)),
            parameters=sum(p.numel() for p in named.values()),
        )


@contextmanager
def _in_full_precision() -> Iterator[None]:
    """Compute in all 24 bits on cards that would round convolutions to 11."""
    switches: tuple[Any, ...] = (torch.backends.cudnn, torch.backends.cuda.matmul)
    found = [switch.allow_tf32 for switch in switches]
    try:
        for switch in switches:
            switch.allow_tf32 = False
        yield
    finally:
        for switch, before in zip(switches, found, strict=True):
            switch.allow_tf32 = before


def _weighed(output: Tensor) -> Tensor:
    r"""Return the mean of $\cos(k)\, y_k$, whose gradient is not 0 at $y = 0$."""
    places = torch.arange(output.numel(), device=output.device, dtype=output.dtype)
    return (output.flatten() * torch.cos(places)).mean()


def _backward(loss: Tensor) -> bool:
    """Go backwards; tell whether that fails, as where code writes over its inputs."""
    try:
        if loss.requires_grad:
            loss.backward()
    except RuntimeError:
        return True
    return False


def compare(before: Pass, after: Pass) -> Check:
    """Say what became of a network, or that it no longer works.

    Raises:
        SurgeryError: It returns something else, or numbers that are not finite.
    """
    shapes = [[tuple(o.shape) for o in each.outputs] for each in (before, after)]
    if shapes[0] != shapes[1]:
        raise SurgeryError(
            f"the altered network returns shapes {shapes[1]}, wanted are those of the "
            f"original, {shapes[0]}: alter fewer parts of it"
        )
    if not _sound(after) and _sound(before):
        raise SurgeryError(
            "the altered network returns numbers or gradients that are not finite, and "
            "the original did not: use smaller scales, or alter fewer parts of it"
        )
    return Check(
        change=_change(before.outputs, after.outputs),
        gradient=after.gradient,
        unreached=tuple(sorted(after.unreached & before.reached)),
        parameters=(before.parameters, after.parameters),
    )


def _sound(each: Pass) -> bool:
    finite = all(bool(torch.isfinite(output).all()) for output in each.outputs)
    return finite and math.isfinite(each.gradient)


def _change(before: tuple[Tensor, ...], after: tuple[Tensor, ...]) -> float:
    size = max((float(o.abs().max()) for o in before if o.numel()), default=0.0)
    pairs = zip(before, after, strict=True)
    moved = max(
        (float((a - b).abs().max()) for b, a in pairs if b.numel()), default=0.0
    )
    return moved / size if size else moved


def _numbers(outputs: Any, depth: int = 3) -> list[Tensor]:
    """List the floating-point tensors that a model returned."""
    if isinstance(outputs, Tensor):
        return [outputs] if outputs.is_floating_point() else []
    if outputs is None or isinstance(outputs, str | bytes) or depth == 0:
        return []
    if isinstance(outputs, Mapping):
        parts = list(outputs.values())
    elif isinstance(outputs, Iterable):
        parts = list(outputs)
    else:
        parts = list(getattr(outputs, "__dict__", {}).values())
    return [tensor for part in parts for tensor in _numbers(part, depth - 1)]

"""One forward pass, linearised between two named modules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from theodolite.core import MeasurementError, unknown_name

Block = str | tuple[str, str]


@dataclass
class Linearisation:
    """The graph from the input activation of a span to its output activation.

    Attributes:
        inputs: A leaf that holds the activation entering the span.
        outputs: The activation leaving it, with its graph.
        norm_rank: Largest rank by which the batch statistics of the norms inside
            couple samples; see :func:`norm_rank`.
    """

    inputs: Tensor
    outputs: Tensor
    norm_rank: int


@dataclass
class _Seen:
    """Tensors and modules that the hooks saw during the pass."""

    inputs: Tensor | None = None
    outputs: list[Tensor] = field(default_factory=list)
    entered: int = 0
    left: int = 0
    norm_rank: int = 0


def linearise(
    model: nn.Module,
    block: Block,
    forward: Callable[[], Any],
    *,
    norms: Sequence[nn.Module],
    ranks: int = 1,
) -> Linearisation:
    """Run the model once and keep the graph of one span.

    Must be called inside ``opened``. The activation that enters the first module is
    replaced by a leaf, and the one that leaves the last by a constant, so that nothing
    outside is differentiated: paths around the span, and other arguments of its first
    module, are held fixed.

    Args:
        model: The whole model, already in its norm mode.
        block: Name of a module, or the names of the first and the last.
        forward: Runs the model once on the batch.
        norms: BatchNorm layers that take batch statistics.
        ranks: Processes whose samples share statistics with those here.
    """
    names = (block, block) if isinstance(block, str) else tuple(block)
    if len(names) != 2:
        raise MeasurementError(
            f"a span of {len(names)} names came: pass one, or the first and the last"
        )
    first, last = (named(model, name) for name in names)
    seen = _Seen()
    # Hooks run in the order of registration: a norm at the start of the span must
    # be entered before it is counted.
    first.register_forward_pre_hook(_entrance(seen, names[0]), with_kwargs=True)
    for norm in norms:
        norm.register_forward_pre_hook(_count_into(seen, ranks))
    last.register_forward_hook(_exit(seen))
    for parameter in model.parameters():
        parameter.requires_grad_(False)  # only activations have derivatives
    forward()
    return _checked(seen, names)


def named(model: nn.Module, name: str) -> nn.Module:
    """Return a submodule by its name; compiled wrappers may be left out of it."""
    known: dict[str, nn.Module] = {}
    for path, module in model.named_modules():
        known.setdefault(path, module)
        known.setdefault(
            path.replace("_orig_mod.", "").removesuffix("._orig_mod"), module
        )
    if name not in known:
        raise unknown_name("submodule", name, [path for path in known if path])
    return known[name]


def norm_rank(inputs: Tensor, ranks: int = 1) -> int:
    r"""Return the rank by which one BatchNorm couples the samples of its input.

    With batch statistics the derivative of a channel with $M$ entries is
    $\frac{\gamma}{s}(I - \frac1M 11^\top - \frac1M \hat x \hat x^\top)$; with the same
    statistics held constant it is $\frac{\gamma}{s} I$. The difference has rank
    $\min(2, M)$; several processes together have $M \ge 2$.
    """
    channels = inputs.shape[1]
    return min(2, ranks * inputs.numel() // max(channels, 1)) * channels


def _count_into(
    seen: _Seen, ranks: int
) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
    def count(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        if seen.entered > 0 and seen.left == 0:
            seen.norm_rank += norm_rank(args[0], ranks)

    return count


def _entrance(seen: _Seen, name: str) -> Callable[..., Any]:
    def enter(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        seen.entered += 1
        if seen.entered > 1:
            return None
        leaves, tree = tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        real = [leaf for leaf in tensors if leaf.is_floating_point()]
        if not real:
            types = ", ".join(str(leaf.dtype) for leaf in tensors) or "no tensor"
            raise MeasurementError(
                f"the input of {name!r} is {types}, which has no derivative: choose a "
                "block that takes real activations"
            )
        source = real[0]
        seen.inputs = source.detach().clone().requires_grad_(True)
        # The leaf itself may not be written to; a copy of it may.
        copy = seen.inputs.clone()
        swapped = [copy if leaf is source else leaf for leaf in leaves]
        return tree_unflatten(swapped, tree)

    return enter


def _exit(seen: _Seen) -> Callable[..., Any]:
    def leave(_: nn.Module, args: Any, result: Any) -> Any:
        seen.left += 1
        if seen.left > 1:
            return None
        leaves, tree = tree_flatten(result)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        seen.outputs = [leaf for leaf in tensors if leaf.requires_grad] or tensors[:1]
        # Later modules may write into their inputs, so they get a copy.
        given = [
            leaf.detach().clone() if isinstance(leaf, Tensor) else leaf
            for leaf in leaves
        ]
        return tree_unflatten(given, tree)

    return leave


def _checked(seen: _Seen, names: Sequence[str]) -> Linearisation:
    span = repr(names[0]) if names[0] == names[1] else " to ".join(map(repr, names))
    for name, calls in zip(names, (seen.entered, seen.left), strict=True):
        if calls != 1:
            how = "never called" if calls == 0 else f"called {calls} times"
            raise MeasurementError(
                f"submodule {name!r} is {how} in a forward pass, so it has no one "
                "Jacobian: choose a block that is called once"
            )
    if seen.inputs is None or not seen.outputs:
        raise MeasurementError(f"block {span} returned no tensor: choose another")
    if len(seen.outputs) > 1:
        raise MeasurementError(
            f"block {span} returned {len(seen.outputs)} tensors: choose one that "
            "returns a single tensor, such as a submodule of it"
        )
    outputs = seen.outputs[0]
    if not seen.inputs.numel() or not outputs.numel():
        raise MeasurementError(
            f"block {span} maps {tuple(seen.inputs.shape)} to {tuple(outputs.shape)}, "
            "which is empty: pass a batch with samples"
        )
    if not outputs.requires_grad:
        raise MeasurementError(
            f"the output of block {span} does not depend on its input: name the "
            "modules in the order in which they run, and look for detach()"
        )
    if not bool(torch.isfinite(outputs).all()):
        raise MeasurementError(
            f"the output of block {span} holds NaN or infinity: check the batch and "
            "the weights"
        )
    return Linearisation(seen.inputs, outputs, seen.norm_rank)

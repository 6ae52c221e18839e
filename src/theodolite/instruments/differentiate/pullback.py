"""Pull cotangents back through a kept graph, one or many at once."""

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from theodolite.core import Exclusive, MeasurementError, stream

from .custom_functions import refuse_error_nodes
from .model_backward import instrument_backward
from .parts import Parts, filled, zeros

# Roundings of the largest numbers that cancelling sums may leave; up to 5 were
# seen, for biases before batch norms.
_LEFT_OVER = 30


def pull_back(
    outputs: Sequence[Tensor | None],
    variables: Sequence[Tensor],
    cotangents: Sequence[Tensor],
) -> Parts:
    """Return pulled-back cotangents, with zeros for variables without influence.

    The graph is kept.
    """
    pairs = [
        (output, cotangent)
        for output, cotangent in zip(outputs, cotangents, strict=True)
        if output is not None and output.requires_grad
    ]
    if not pairs:
        return zeros(variables)
    try:
        # No graph is made, so no operator needs to be replaced.
        with torch._C.DisableTorchFunction():
            parts = torch.autograd.grad(
                [output for output, _ in pairs],
                list(variables),
                [cotangent for _, cotangent in pairs],
                retain_graph=True,
                allow_unused=True,
            )
    except RuntimeError as error:
        raise explained(error) from error
    # The result may be one of the cotangents itself.
    whole = filled(parts, variables)
    return [part.detach() if part.requires_grad else part for part in whole]


def pull_back_with_graph(
    outputs: Sequence[Tensor],
    variables: Sequence[Tensor],
    cotangents: Sequence[Tensor] | None = None,
    *,
    keep: bool = True,
) -> Sequence[Tensor | None]:
    """Pull cotangents back as an instrument; None for variables without influence.

    Args:
        outputs: Tensors to differentiate.
        variables: Tensors to differentiate by.
        cotangents: One for each output; 1 for a scalar by default.
        keep: Whether the result has a graph, for derivatives of it.
    """
    try:
        with instrument_backward():
            gradient = torch.autograd.grad(
                outputs, variables, cotangents, create_graph=keep, allow_unused=True
            )
    except RuntimeError as error:
        raise explained(error) from error
    if keep:
        refuse_error_nodes(gradient, outputs, variables)
    return gradient


def pull_back_many(
    outputs: Tensor,
    inputs: Sequence[Tensor],
    cotangents: Tensor,
    *,
    batched: bool,
    by_rules: bool = False,
) -> Parts:
    """Pull a block of cotangents (k, ...) back, all at once or one by one.

    Args:
        outputs: Tensors to differentiate.
        inputs: Tensors to differentiate by.
        cotangents: One per row.
        batched: Whether all go at once.
        by_rules: Whether the graph has operators that only ``vmap`` batches.
    """
    if not batched:
        rows = [pull_back([outputs], inputs, [given]) for given in cotangents]
        return [torch.stack(parts) for parts in zip(*rows, strict=True)]
    with Exclusive(), warnings.catch_warnings():  # all threads share its filters
        # Operators without a batching rule fall back to a loop, with a warning.
        warnings.filterwarnings("ignore", message="There is a performance drop")
        parts = _pulled(outputs, inputs, cotangents, by_rules)
    return [
        tensor.new_zeros(len(cotangents), *tensor.shape) if part is None else part
        for part, tensor in zip(parts, inputs, strict=True)
    ]


def _pulled(
    outputs: Tensor, inputs: Sequence[Tensor], cotangents: Tensor, by_rules: bool
) -> Sequence[Tensor | None]:
    """Pull a block back by the faster of torch's two ways to batch.

    ``is_grads_batched`` runs convolutions one by one. ``vmap`` has rules for them, more
    than twice as fast in float32, but slower in float64 on a CPU.
    """

    def pull(cotangent: Tensor, batched: bool = False) -> Sequence[Tensor | None]:
        return torch.autograd.grad(
            outputs,
            inputs,
            cotangent,
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=batched,
        )

    plain = outputs.dtype is torch.float64 and outputs.device.type == "cpu"
    if plain and not by_rules:
        return pull(cotangents, batched=True)

    def pull_one(cotangent: Tensor) -> dict[int, Tensor]:
        parts = enumerate(pull(cotangent))
        return {place: part for place, part in parts if part is not None}

    by_place = torch.func.vmap(pull_one)(cotangents)
    return [by_place.get(place) for place in range(len(inputs))]


def can_batch(
    outputs: Tensor, inputs: Sequence[Tensor], *, seed: int = 0, by_rules: bool = False
) -> bool:
    """Return whether torch can batch the pull-back of this graph correctly.

    Two random cotangents are pulled back together and separately: a missing batching
    rule raises, a wrong one gives a different result.
    """
    noise = stream(seed, "batching").normal(size=(2, *outputs.shape))
    cotangents = torch.as_tensor(noise).to(outputs)
    try:
        together = pull_back_many(
            outputs, inputs, cotangents, batched=True, by_rules=by_rules
        )
    except RuntimeError:
        return False
    return all_close(
        together, pull_back_many(outputs, inputs, cotangents, batched=False)
    )


def all_close(result: Parts, wanted: Parts) -> bool:
    """Return whether all parts of two results agree within rounding of their type.

    Some parts are only the remainder of cancelling sums, such as those of biases before
    batch norms, so each part is allowed the rounding of the largest part.
    """
    largest = max(map(_size, wanted), default=0.0)
    return all(
        close(*pair, beside=largest) for pair in zip(result, wanted, strict=True)
    )


def close(result: Tensor, wanted: Tensor, *, beside: float = 0.0) -> bool:
    """Return whether two results agree within rounding of their type.

    Args:
        result: One of them.
        wanted: The other; its largest number sets the scale.
        beside: Size of other numbers, whose rounding both may contain.
    """
    eps = torch.finfo(wanted.dtype).eps
    limit = eps * max(1e3 * _size(wanted), _LEFT_OVER * beside, 1e-300)
    gap = _size(result - wanted)
    return bool(np.isfinite(gap)) and gap <= limit


def _size(tensor: Tensor) -> float:
    return float(tensor.abs().max()) if tensor.numel() else 0.0


# Messages of torch about operators that have no derivative.
_LACKING = (
    "is not implemented",
    "no autograd formula was registered",
    "don't support automatic differentiation",
)


def explained(error: RuntimeError) -> Exception:
    """Replace known error messages of autograd by one clear sentence."""
    text = str(error)
    if "modified by an inplace operation" in text:
        return MeasurementError(
            "a tensor that the derivative needs was written to: make a new operator if "
            "the parameters were changed since this one was made; else the model does "
            "so itself, as backward() would say too, and wants its in-place "
            "operations replaced"
        )
    if any(words in text for words in _LACKING):
        return MeasurementError(
            f"torch lacks a derivative that this product wants ({text.splitlines()[0]})"
            ": use another layer, or the transposed product alone"
        )
    return error

"""The scalar to differentiate, from model, batch and loss; what a batch consists of."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError, TheodoliteError

from .misfits import (
    BY_ELEMENTS,
    OF_CLASSES,
    input_misfit,
    raised_by_torch,
    target_misfit,
)
from .reachable_state import only_read

Batch = Any
# A module or function of outputs and targets, or a function of model and batch.
Loss = nn.Module | Callable[[Any, Any], Tensor]
Outputs = Callable[[nn.Module, Batch], Any]
Reduction = Literal["mean", "sum"]
Weights = Callable[[Batch], Any]
# Names of targets in mappings, those of Hugging Face first; the target to be ignored.
_TARGETS = ("labels", "label", "targets", "target")
_IGNORED = -100


class HalfSquareLoss(nn.Module):
    r"""$\frac{1}{2m}\sum_\mu \|f(x^\mu) - y^\mu\|^2$, summed over outputs.

    Example:
        >>> HalfSquareLoss()(torch.ones(4, 2), torch.zeros(4, 2))
        tensor(1.)
    """

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of a batch."""
        if outputs.shape != targets.shape:
            raise MeasurementError(
                f"outputs of shape {tuple(outputs.shape)} and targets of shape "
                f"{tuple(targets.shape)}: the square loss wants equal shapes, such as "
                "one-hot targets"
            )
        return (outputs - targets).square().sum() / (2 * len(outputs))


def run_model(model: nn.Module, batch: Batch) -> Any:
    """Call a model on a batch; the first part of a pair is the inputs."""
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    return call_model(model, batch[0] if paired else batch)


def evaluate(model: nn.Module, batch: Batch, loss: Loss) -> Tensor:
    """Return the loss as a scalar tensor, finite or not."""
    if isinstance(loss, nn.Module):
        inputs, targets = pair_of(batch)
        return scalar_value(judged(loss, call_model(model, inputs), targets))
    try:
        return scalar_value(loss_of_batch(model, batch, loss))
    except (TypeError, AttributeError):
        # It may be a function of outputs and targets with other argument names.
        value = _of_outputs(model, batch, loss)
        if value is None:
            raise
        return scalar_value(value)


def loss_of_batch(model: nn.Module, batch: Batch, loss: Any) -> Any:
    """Return what a function of model and batch gives; it may write to targets."""
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    named = isinstance(batch, Mapping)
    kept = [v for k, v in batch.items() if k not in _TARGETS] if named else batch
    with only_read(model, tensors_in(batch[0] if paired else kept)):
        return loss(model, batch)


def returned_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the loss that a model computes from a batch of keyword arguments."""
    output = call_model(model, batch) if isinstance(batch, Mapping) else None
    keyed = isinstance(output, Mapping)
    value = output.get("loss") if keyed else getattr(output, "loss", None)
    if value is None:
        raise MeasurementError(
            "no loss was given and the model returned none: pass loss=…, or a mapping "
            "with labels to a model whose output has a loss, as in Hugging Face"
        )
    return value


def _of_outputs(model: nn.Module, batch: Batch, loss: Any) -> Tensor | None:
    paired = isinstance(batch, Sequence) and len(batch) == 2
    try:
        return loss(call_model(model, batch[0]), batch[1]) if paired else None
    except (TypeError, AttributeError):
        return None


def scalar_value(value: Any) -> Tensor:
    """Return a loss as a scalar tensor, or raise if it is not one."""
    if not isinstance(value, Tensor) or value.numel() != 1:
        came = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise MeasurementError(
            f"the loss returned {came}, wanted one number: reduce it, "
            "for instance by its mean"
        )
    return value.reshape(())


def checked_value(value: Any) -> Tensor:
    """Return a loss as a finite scalar, or raise if it is not one."""
    value = scalar_value(value)
    if not torch.isfinite(value).all():
        raise MeasurementError(
            f"the loss is {value.item()}: check the batch and the weights for NaN and "
            "infinity, and the dtype for overflow"
        )
    return value


def call_model(model: nn.Module, inputs: Any) -> Any:
    """Call a model on its inputs: keyword arguments if they are a mapping, or several.

    Raises:
        MeasurementError: The model does not take inputs of their kind or shape, or it
            writes to them, so that the next pass would get others.
    """
    try:
        with only_read(model, tensors_in(inputs)):
            if isinstance(inputs, Mapping):
                return model(**inputs)
            return model(*inputs) if _several(model, inputs) else model(inputs)
    except (RuntimeError, TypeError) as error:
        if reason := input_misfit(model, inputs, error):
            raise MeasurementError(reason) from error
        raise


def _several(model: nn.Module, inputs: Any) -> bool:
    """Return whether inputs are a tuple for a forward that takes several arguments.

    An argument whose default is None may be one of them, as of a decoder that is given
    what comes next while it is trained.
    """
    if not isinstance(inputs, tuple) or len(inputs) < 2:
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = inspect.signature(model.forward).parameters.values()
    given = [p for p in named if p.kind in kinds]
    wanted = sum(p.default is p.empty for p in given)
    optional = [p for p in given[wanted : len(inputs)] if p.default is None]
    return wanted > 1 or wanted + len(optional) == len(inputs)


def outputs_of(model: nn.Module, batch: Batch) -> Tensor:
    """Return the model's outputs; the first part of a pair is the inputs."""
    return checked_outputs(run_model(model, batch))


def checked_outputs(outputs: Any) -> Tensor:
    """Return the outputs if they are one tensor, or raise."""
    if not isinstance(outputs, Tensor):
        raise MeasurementError(
            f"the model returned a {type(outputs).__name__}, wanted is one tensor: "
            "pass outputs=lambda model, batch: …, which picks it"
        )
    return outputs


def check_finite(outputs: Tensor) -> None:
    """Refuse outputs that hold NaN or infinity."""
    if not torch.isfinite(outputs).all():
        raise MeasurementError(
            "the outputs hold NaN or infinity: check the batch and the weights for NaN "
            "and infinity, and the dtype for overflow"
        )


def reduction_of(loss: Loss, stated: Reduction | None) -> Reduction:
    """Return how a loss combines samples: as its module says, or as stated."""
    own = getattr(loss, "reduction", None) if isinstance(loss, nn.Module) else None
    own = "mean" if own == "batchmean" else own
    if own not in (None, "mean", "sum"):
        raise MeasurementError(
            f"the loss has reduction {own!r}, wanted is one number: use 'mean' or 'sum'"
        )
    if stated not in (None, "mean", "sum"):
        raise MeasurementError(f"reduction {stated!r}: pass 'mean' or 'sum'")
    if own is not None and stated is not None and own != stated:
        raise MeasurementError(
            f"the loss module says reduction {own!r} and the call {stated!r}: leave "
            "out reduction="
        )
    return own or stated or "mean"


class Divisor:
    """The divisor of a batch's mean, up to a constant factor.

    That is the number of samples; with class weights or an ignored index, the total
    weight of the targets that count; or the result of ``weights``. A custom loss may
    divide by its targets or its samples: a comparison finds out which.

    Args:
        loss: The loss.
        reduction: How it combines samples.
        weights: Returns the divisor of a batch's mean.

    Attributes:
        sums: Whether the loss divides by nothing.
        known: Whether torch defines the reduction, so that no comparison is needed.
        rules: How many rules there are to choose from.
        place: Index of the rule in use.
        shifted: Whether the first target of each sample is ignored, as causal language
            models do.
    """

    def __init__(
        self, loss: Loss, reduction: Reduction, weights: Weights | None = None
    ) -> None:
        self._loss, self._weights = loss, weights
        self.sums, self.place, self.shifted = reduction == "sum", 0, False
        own = type(loss).__module__ == nn.MSELoss.__module__
        self.known = own or isinstance(loss, HalfSquareLoss)
        certain = isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss) or self.known
        self.rules = 1 if certain or weights is not None else 2

    def __call__(self, batch: Batch, samples: int) -> float:
        """Return the divisor for a batch of so many samples."""
        if self._weights is not None:
            return _total(self._weights(batch))
        if isinstance(self._loss, nn.CrossEntropyLoss | nn.NLLLoss):
            targets, weight = pair_of(batch)[1], self._loss.weight
        else:
            targets = self.targets(batch) if self.place < self.rules - 1 else None
            weight = None
        if not isinstance(targets, Tensor) or targets.is_floating_point():
            return float(samples)
        if self.shifted and targets.ndim > 1:
            targets = targets[:, 1:]
        counted = targets[targets != self.ignored]
        return float(counted.numel() if weight is None else weight[counted].sum())

    @property
    def ignored(self) -> int:
        """The target that is ignored."""
        return getattr(self._loss, "ignore_index", _IGNORED)

    def targets(self, batch: Batch) -> Tensor | None:
        """Return the integer tensor of a batch that a custom loss may count."""
        targets = None
        if isinstance(batch, Mapping):
            targets = next((batch[key] for key in _TARGETS if key in batch), None)
        elif isinstance(batch, Sequence) and len(batch) == 2:
            targets = batch[1]
        if not isinstance(targets, Tensor) or not targets.ndim:
            return None
        return None if targets.is_floating_point() or targets.is_complex() else targets


def check_weights(weights: Weights | None, reduction: Reduction) -> None:
    """Refuse weights of a loss that divides by nothing."""
    if weights is not None and reduction != "mean":
        raise MeasurementError(
            "weights= say what a mean divides by, and the reduction is 'sum': leave "
            "them out"
        )


def _total(given: Any) -> float:
    """Return the sum of sample weights, or a given sum unchanged."""
    try:
        # Of lists torch would make float32.
        total = float(
            torch.as_tensor(given, dtype=torch.float64, device="cpu").detach().sum()
        )
    except (TypeError, ValueError, RuntimeError):
        total = float("nan")
    if not 0 <= total < float("inf"):
        raise MeasurementError(
            f"weights(batch) gave {type(given).__name__} of sum {total}, wanted are "
            "numbers from 0 up, one or one a sample: count for instance the targets "
            "that are not ignored"
        )
    return total


def pair_of(batch: Batch) -> tuple[Any, Any]:
    """Return inputs and targets, or raise if the batch is not a pair."""
    if not isinstance(batch, Sequence) or len(batch) != 2:
        raise MeasurementError(
            f"a batch of type {type(batch).__name__} came with a loss module, which "
            "wants a pair (inputs, targets): pass one, or loss(model, batch) -> scalar"
        )
    return batch[0], batch[1]


_LOSSES = nn.MSELoss.__module__


def judged(loss: nn.Module, outputs: Any, targets: Any) -> Any:
    """Return the value of a loss module, or raise if outputs and targets do not fit."""
    name = type(loss).__name__
    if type(loss).__module__ == _LOSSES and not isinstance(outputs, Tensor):
        raise MeasurementError(
            f"the model returned a {type(outputs).__name__}, and {name} wants one "
            "tensor: pass loss=lambda model, batch: …, which picks it"
        )
    if isinstance(outputs, Tensor) and isinstance(targets, Tensor):
        spread = isinstance(loss, BY_ELEMENTS) and outputs.shape != targets.shape
        # On a GPU a label out of range makes the device unusable for the process.
        if spread or (targets.is_cuda and isinstance(loss, OF_CLASSES)):
            if reason := target_misfit(loss, outputs, targets):
                raise MeasurementError(reason)
    try:
        return loss(outputs, targets)
    except TheodoliteError:
        raise
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        both = isinstance(outputs, Tensor) and isinstance(targets, Tensor)
        if both and raised_by_torch(error):
            if reason := target_misfit(loss, outputs, targets):
                raise MeasurementError(reason) from error
        raise


def tensors_in(batch: Batch) -> list[Tensor]:
    """List the tensors of a batch, however they are nested."""
    tensors, left = [], [batch]
    while left:
        part = left.pop()
        if isinstance(part, Tensor):
            tensors.append(part)
        elif isinstance(part, Mapping):
            left += reversed(list(part.values()))
        elif isinstance(part, tuple | list):
            left += reversed(part)
    return tensors


def samples_in(batch: Batch) -> int | None:
    """Return the number of samples: the first axis that all tensors share, or None.

    Example:
        >>> samples_in({"x": torch.zeros(5, 2), "y": torch.zeros(5)})
        5
    """
    sizes = {len(tensor) for tensor in tensors_in(batch) if tensor.ndim}
    return sizes.pop() if len(sizes) == 1 else None


def slice_batch(batch: Batch, start: int, stop: int) -> Batch:
    """Return the samples from ``start`` to ``stop``."""
    return map_tensors(batch, lambda t: t[start:stop] if t.ndim else t)


def check_devices(batches: Iterable[Batch], device: torch.device) -> None:
    """Refuse data that is not on the model's device, or that autograd refuses."""
    for batch in batches:
        for tensor in tensors_in(batch):
            if tensor.device != device:
                raise MeasurementError(
                    f"the model is on {device} and a batch on {tensor.device}: move "
                    f"the batch with .to({str(device)!r})"
                )
            if tensor.is_inference():
                raise MeasurementError(
                    "a batch was made under torch.inference_mode, and autograd cannot "
                    "use such tensors: pass tensor.clone(), made outside of it"
                )


def map_tensors(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function to every tensor of nested tuples, lists and mappings."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        parts = {key: map_tensors(part, change) for key, part in batch.items()}
        return _rebuilt(batch, parts)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*[map_tensors(part, change) for part in batch])
    if isinstance(batch, tuple | list):
        return type(batch)([map_tensors(part, change) for part in batch])
    return batch


def _rebuilt(mapping: Mapping[Any, Any], parts: dict[Any, Any]) -> Any:
    """Return a mapping of the same type if that accepts a dict, else a dict."""
    try:
        return type(mapping)(parts)  # pyright: ignore[reportCallIssue]
    except TypeError:
        return parts

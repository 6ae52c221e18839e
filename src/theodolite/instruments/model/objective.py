"""The scalar to differentiate, from model, batch and loss."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from theodolite.core import Exclusive, MeasurementError

from .losses import judged

Batch = Any
# A module or function of outputs and targets, or a function of model and batch.
Loss = nn.Module | Callable[[Any, Any], Tensor]
Outputs = Callable[[nn.Module, Batch], Any]
Reduction = Literal["mean", "sum"]
Weights = Callable[[Batch], Any]
# Names of targets in batches that are mappings, those of Hugging Face first, and the
# target that torch and Hugging Face ignore.
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
        return scalar_value(loss(model, batch))
    except (TypeError, AttributeError):
        # It may be a function of outputs and targets with other argument names.
        value = _of_outputs(model, batch, loss)
        if value is None:
            raise
        return scalar_value(value)


def returned_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the loss that a model computes from a batch of keyword arguments."""
    named = isinstance(batch, Mapping)
    value = getattr(call_model(model, batch), "loss", None) if named else None
    if value is None:
        raise MeasurementError(
            "no loss was given and the model returned none: pass loss=…, or a mapping "
            "with labels to a model whose output has .loss, as in Hugging Face"
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
    """Call a model on its inputs; a mapping is passed as keyword arguments.

    Raises:
        MeasurementError: The model does not take inputs of their kind or shape.
    """
    try:
        return model(**inputs) if isinstance(inputs, Mapping) else model(inputs)
    except (RuntimeError, TypeError) as error:
        if isinstance(error, RuntimeError) and _OF_SHAPES.search(str(error)):
            raise MeasurementError(
                f"the model does not take inputs of shape {_shapes(inputs)} "
                f"({str(error).splitlines()[0]}): pass samples along the first "
                "dimension, each of the shape that it was made for"
            ) from error
        if kind := _foreign(model, inputs):
            own = next(iter({p.dtype: 0 for p in model.parameters()}), torch.float32)
            raise MeasurementError(
                f"the model is {str(own).removeprefix('torch.')} and does not take "
                f"inputs that are {kind} ({str(error).splitlines()[0]}): pass "
                f"torch.as_tensor(inputs).to({own}), or convert the model"
            ) from error
        raise


# Messages of torch about sizes that do not fit.
_OF_SHAPES = re.compile(
    r"shapes cannot be multiplied|size mismatch|must match the size|channels, but got"
    r"|normalized_shape|should be the same size|is invalid for input of size"
)


def _shapes(inputs: Any) -> str:
    parts = inputs.values() if isinstance(inputs, Mapping) else [inputs]
    return ", ".join(str(tuple(p.shape)) for p in parts if isinstance(p, Tensor))


def _foreign(model: nn.Module, inputs: Any) -> str:
    """Return the types of those inputs that do not have the parameters' dtype."""
    own = {parameter.dtype for parameter in model.parameters()}
    parts = inputs.values() if isinstance(inputs, Mapping) else [inputs]
    kinds = [
        str(part.dtype).removeprefix("torch.")
        if isinstance(part, Tensor)
        else f"a {type(part).__name__}"
        for part in parts
        if not (isinstance(part, Tensor) and part.dtype in own)
    ]
    return ", ".join(dict.fromkeys(kinds))


def outputs_of(model: nn.Module, batch: Batch) -> Tensor:
    """Return the model's outputs; the first part of a pair is the inputs."""
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    return checked_outputs(call_model(model, batch[0] if paired else batch))


def checked_outputs(outputs: Any) -> Tensor:
    """Return the outputs if they are one tensor, or raise with advice."""
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


def _as_float64(given: Any) -> Tensor:
    """Return numbers in float64; torch would make float32 of lists."""
    if isinstance(given, Tensor):
        return given.detach().double()
    return torch.as_tensor(given, dtype=torch.float64)


def _total(given: Any) -> float:
    """Return the sum of sample weights, or a given sum unchanged."""
    try:
        total = float(_as_float64(given).sum())
    except (TypeError, ValueError, RuntimeError):
        total = float("nan")
    if not 0 <= total < float("inf"):
        raise MeasurementError(
            f"weights(batch) gave {type(given).__name__} of sum {total}, wanted are "
            "numbers from 0 up, one or one a sample: count for instance the targets "
            "that are not ignored"
        )
    return total


def chosen_parameters(
    model: nn.Module, names: Sequence[str] | None
) -> dict[str, nn.Parameter]:
    """Return the parameters by name: all that require a gradient, or those named."""
    refuse_lazy(model)
    # Tied parameters can be chosen by each of their names.
    known = dict(model.named_parameters(remove_duplicate=False))
    if names is None:
        known = dict(model.named_parameters())
        with Exclusive():  # another thread that has it open sets these flags
            chosen = {name: p for name, p in known.items() if p.requires_grad}
        if not chosen:
            raise MeasurementError(
                f"{type(model).__name__} has no parameters that require a gradient: "
                "pass a module with weights, or unfreeze some"
            )
        return chosen
    missing = [name for name in names if name not in known]
    if missing or not names:
        raise MeasurementError(
            f"parameters {missing or 'none'} asked for, but the model has "
            f"{', '.join(list(known)[:8])}{'…' if len(known) > 8 else ''}: name those"
        )
    chosen = {name: known[name] for name in names}
    if len({id(parameter) for parameter in chosen.values()}) < len(names):
        raise MeasurementError(
            f"parameters {', '.join(names)} hold one twice, by the same or by another "
            "name: name each once"
        )
    return chosen


def refuse_lazy(model: nn.Module) -> None:
    """Refuse a model with lazy layers that have no shape yet."""
    for name, given in (*model.named_parameters(), *model.named_buffers()):
        if is_lazy(given):
            raise MeasurementError(
                f"{name!r} has no shape before a first batch, since its layer is lazy: "
                "run the model on a batch once, then measure it"
            )


def pair_of(batch: Batch) -> tuple[Any, Any]:
    """Return inputs and targets, or raise if the batch is not a pair."""
    if not isinstance(batch, Sequence) or len(batch) != 2:
        raise MeasurementError(
            f"a batch of type {type(batch).__name__} came with a loss module, which "
            "wants a pair (inputs, targets): pass one, or loss(model, batch) -> scalar"
        )
    return batch[0], batch[1]


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the original of a compiled or ``DistributedDataParallel`` model."""
    model = getattr(model, "_orig_mod", model)
    spread = isinstance(model, nn.parallel.DistributedDataParallel)
    return model.module if spread else model

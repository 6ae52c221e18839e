"""Forward and backward signals by depth, weights and gradients by module, the loss."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.core import TheodoliteError
from theodolite.instruments import HalfSquareLoss

from ..subject.hugging_face import own_loss
from .context import SurveyContext, logits_in, targets_in
from .contract import Found, Measure, number

# A loss of unknown kind that is this near to the cross-entropy is taken for it.
_ALIKE = 1e-3
# Regression losses; the best constant guess is the mean of the targets.
_CONSTANT = (nn.MSELoss, HalfSquareLoss)


class SignalMeasure(Measure):
    """Forward and backward signals of the network.

    ``forward_rms`` and ``forward_correlation`` describe the output of each block,
    ``backward_rms`` the loss's derivative by it; errors are standard errors over
    samples. ``loss_at_chance`` is the loss of a guess that ignores the inputs.
    ``gradient_norm`` is that of all gradients together, and ``n_zero_gradients`` counts
    trained parameters whose gradient is all zero. ``left_out`` is the number of a
    module's trained weights that the optimiser does not hold.
    """

    name: ClassVar = "signal"

    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Yield the loss, blocks by depth, then modules."""
        yield from _loss_rows(context)
        yield from _depth_rows(context)
        yield from _module_rows(context)
        yield from _zero_gradient_rows(context)
        yield from _left_out_rows(context)


def _depth_rows(context: SurveyContext) -> Iterator[Found]:
    first_pass = context.first_pass
    for block_span in context.block_map.spans:
        labels = {
            "block": block_span.block.name,
            "depth": block_span.block.index,
            "n_samples": first_pass.samples,
        }
        signal = first_pass.forward.get(block_span.output)
        if signal is None:
            context.unsupported.append(
                f"{block_span.block.name}: its output is made where it cannot be "
                "hooked, so it has no signal"
            )
            continue
        yield number("forward_rms", signal.rms, signal.rms_error, **labels)
        if not math.isnan(signal.correlation):
            yield number(
                "forward_correlation",
                signal.correlation,
                signal.correlation_error,
                **labels,
            )
        if block_span.output in first_pass.backward:
            value, error = first_pass.backward[block_span.output]
            yield number("backward_rms", value, error, **labels)


def _module_rows(context: SurveyContext) -> Iterator[Found]:
    """Yield sizes of weights and gradients for each module with parameters."""
    owners: dict[str, list[str]] = {}
    parameters = dict(context.model.named_parameters())
    for name in parameters:
        owners.setdefault(name.rpartition(".")[0], []).append(name)
    for owner, names in owners.items():
        weights = [parameters[name].detach() for name in names]
        value = _rms(weights)
        yield number("weight_rms", value, context.rounding * value, module=owner)
        grads = [context.first_pass.gradients.get(name) for name in names]
        known = [grad for grad in grads if grad is not None]
        if known:
            value = _rms(known)
            labels = {"module": owner, "n_samples": context.first_pass.samples}
            yield number("gradient_rms", value, context.rounding * value, **labels)


def _zero_gradient_rows(context: SurveyContext) -> Iterator[Found]:
    """Yield the norm of the gradient, and how many parameters get none."""
    gradients = context.first_pass.gradients
    zero = sum(bool(g.numel()) and not bool(g.any()) for g in gradients.values())
    seen = {"n_samples": context.first_pass.samples}
    norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradients.values()))
    yield number("gradient_norm", norm, context.rounding * norm, **seen)
    of = {"n_parameters": len(gradients), **seen}
    yield number("n_zero_gradients", zero, 0.0, **of)


def _left_out_rows(context: SurveyContext) -> Iterator[Found]:
    if context.optimizer is None:
        return
    groups = context.optimizer.param_groups
    held = {id(p) for group in groups for p in group["params"]}
    for name, parameter in context.model.named_parameters():
        if parameter.requires_grad and id(parameter) not in held:
            owner = name.rpartition(".")[0]
            yield number("left_out", parameter.numel(), 0.0, module=owner)


def _rms(tensors: list[Tensor]) -> float:
    total = sum(float(t.double().square().sum()) for t in tensors)
    return math.sqrt(total / max(sum(t.numel() for t in tensors), 1))


def _loss_rows(context: SurveyContext) -> Iterator[Found]:
    first_pass = context.first_pass
    targets = targets_in(context.first(first_pass.samples))
    try:
        logits = logits_in(first_pass.outputs).detach()
    except TheodoliteError:
        logits = None
    error = context.rounding * abs(first_pass.loss)
    if logits is not None and isinstance(context.loss, nn.CrossEntropyLoss):
        error = max(error, _spread(context.loss, logits, targets))
    seen = {"n_samples": first_pass.samples}
    yield number("loss", first_pass.loss, error, **seen)
    if logits is None:
        return
    chance = _loss_of_a_guess(context, logits, targets)
    if chance is not None:
        guess = "the mean" if isinstance(context.loss, _CONSTANT) else "equal chances"
        error = context.rounding * abs(chance)
        yield number("loss_at_chance", chance, error, guess=guess, **seen)


def _spread(loss: nn.CrossEntropyLoss, logits: Tensor, targets: Any) -> float:
    """Return the standard error of a mean of cross-entropies over samples."""
    if not isinstance(targets, Tensor) or logits.shape[0] < 2:
        return 0.0
    if loss.reduction != "mean":
        return 0.0
    each = nn.functional.cross_entropy(
        logits.double(),
        targets.double() if targets.is_floating_point() else targets,
        weight=None if loss.weight is None else loss.weight.double(),
        ignore_index=loss.ignore_index,
        label_smoothing=loss.label_smoothing,
        reduction="none",
    )
    means = each.reshape(len(each), -1).mean(1)
    return float(means.std()) / math.sqrt(len(means))


def _takes_softmax(context: SurveyContext, logits: Tensor, targets: Any) -> bool:
    """Return whether the loss is the cross-entropy of scores, by its kind or value."""
    if isinstance(context.loss, nn.CrossEntropyLoss):
        return True
    if not isinstance(targets, Tensor) or targets.is_floating_point():
        return False
    if context.loss is own_loss:
        return logits.ndim > 1 and logits.shape[-1] > 1
    value = _cross_entropy(logits, targets)
    return value is not None and math.isclose(
        value, context.first_pass.loss, rel_tol=max(_ALIKE, context.rounding)
    )


def _loss_of_a_guess(
    context: SurveyContext, logits: Tensor, targets: Any
) -> float | None:
    """Return the loss of equal class probabilities, or of the best constant.

    Return None for an unknown loss, such as a sum of two.
    """
    if _takes_softmax(context, logits, targets):
        if not isinstance(context.loss, nn.CrossEntropyLoss):
            return math.log(_classes_last(logits, targets).shape[-1])
        return _valued(context.loss, torch.zeros_like(logits), targets)
    if isinstance(context.loss, nn.NLLLoss):
        equal = torch.full_like(logits, -math.log(max(logits.shape[1], 1)))
        return _valued(context.loss, equal, targets)
    if isinstance(context.loss, nn.BCEWithLogitsLoss):
        return _valued(context.loss, torch.zeros_like(logits), targets)
    if isinstance(context.loss, nn.BCELoss):
        return _valued(context.loss, torch.full_like(logits, 0.5), targets)
    if isinstance(context.loss, _CONSTANT):
        if isinstance(targets, Tensor) and targets.shape == logits.shape:
            middle = targets.double().mean(0).expand(targets.shape)
            return _valued(context.loss, middle, targets) if len(targets) > 1 else None
    return None


def _valued(loss: nn.Module, outputs: Tensor, targets: Any) -> float | None:
    """Return a loss with its own weights and reduction, in float64 if it has none."""
    kept = [b.dtype for b in loss.buffers() if b.is_floating_point()]
    dtype = kept[0] if kept else torch.float64
    if isinstance(targets, Tensor) and targets.is_floating_point():
        targets = targets.to(dtype)
    with torch.no_grad():
        value = loss(outputs.to(dtype), targets)
    return float(value) if value.numel() == 1 else None


def _cross_entropy(logits: Tensor, targets: Tensor) -> float | None:
    """Return the mean cross-entropy over samples and places; None if shapes differ."""
    scores = _classes_last(logits, targets)
    if scores.ndim < 2 or scores.shape[-1] < 2 or targets.shape != scores.shape[:-1]:
        return None
    flat, wanted = scores.double().flatten(0, -2), targets.flatten()
    known = (wanted >= 0) & (wanted < scores.shape[-1])
    if not bool(known.any()):
        return None
    return float(functional.cross_entropy(flat[known], wanted[known]))


def _classes_last(logits: Tensor, targets: Tensor) -> Tensor:
    """Return scores with classes along the last axis; for images, moved from axis 1."""
    return logits.movedim(1, -1) if targets.ndim == 3 == logits.ndim - 1 else logits

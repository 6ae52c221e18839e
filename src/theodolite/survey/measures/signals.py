"""Forward and backward signals by depth, weights and gradients by module, the loss."""

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from torch import Tensor, nn

from theodolite.core import TheodoliteError

from .context import SurveyContext, logits_in, targets_in
from .contract import Found, number


def signal_rows(context: SurveyContext, gradients: float) -> Iterator[Found]:
    """Forward and backward signals of the network.

    ``forward_rms`` and ``forward_correlation`` describe the output of each block,
    ``backward_rms`` the loss's derivative by it; errors are standard errors over
    samples.
    ``gradient_norm`` is that of all gradients together, and ``n_zero_gradients`` counts
    trained parameters whose gradient is all zero. ``left_out`` is the number of a
    module's trained weights that the optimiser does not hold.
    """
    yield from _loss_rows(context)
    yield from _depth_rows(context)
    yield from _module_rows(context)
    yield from _zero_gradient_rows(context)
    yield from _left_out_rows(context)


def _depth_rows(context: SurveyContext) -> Iterator[Found]:
    first_pass = context.net.first_pass
    for block_span in context.net.block_map.spans:
        labels = {
            "block": block_span.block.name,
            "depth": block_span.block.index,
            "n_samples": first_pass.samples,
        }
        signal = first_pass.forward.get(block_span.output)
        if signal is None:
            context.net.unsupported.append(
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
    parameters = dict(context.net.model.named_parameters())
    for name in parameters:
        owners.setdefault(name.rpartition(".")[0], []).append(name)
    for owner, names in owners.items():
        weights = [parameters[name].detach() for name in names]
        value = _rms(weights)
        yield number("weight_rms", value, context.rounding * value, module=owner)
        grads = [context.net.first_pass.gradients.get(name) for name in names]
        known = [grad for grad in grads if grad is not None]
        if known:
            value = _rms(known)
            labels = {"module": owner, "n_samples": context.net.first_pass.samples}
            yield number("gradient_rms", value, context.rounding * value, **labels)


def _zero_gradient_rows(context: SurveyContext) -> Iterator[Found]:
    """Yield the norm of the gradient, and how many parameters get none."""
    gradients = context.net.first_pass.gradients
    zero = sum(bool(g.numel()) and not bool(g.any()) for g in gradients.values())
    seen = {"n_samples": context.net.first_pass.samples}
    norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradients.values()))
    yield number("gradient_norm", norm, context.rounding * norm, **seen)
    of = {"n_parameters": len(gradients), **seen}
    yield number("n_zero_gradients", zero, 0.0, **of)


def _left_out_rows(context: SurveyContext) -> Iterator[Found]:
    if context.optimizer is None:
        return
    groups = context.optimizer.param_groups
    held = {id(p) for group in groups for p in group["params"]}
    for name, parameter in context.net.model.named_parameters():
        if parameter.requires_grad and id(parameter) not in held:
            owner = name.rpartition(".")[0]
            yield number("left_out", parameter.numel(), 0.0, module=owner)


def _rms(tensors: list[Tensor]) -> float:
    total = sum(float(t.double().square().sum()) for t in tensors)
    return math.sqrt(total / max(sum(t.numel() for t in tensors), 1))


def _loss_rows(context: SurveyContext) -> Iterator[Found]:
    first_pass = context.net.first_pass
    error = context.rounding * abs(first_pass.loss)
    if isinstance(context.net.problem.criterion, nn.CrossEntropyLoss):
        targets = targets_in(context.net.first(first_pass.samples))
        with suppress(TheodoliteError):
            logits = logits_in(first_pass.outputs).detach()
            error = max(error, _spread(context.net.problem.criterion, logits, targets))
    yield number("loss", first_pass.loss, error, n_samples=first_pass.samples)


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

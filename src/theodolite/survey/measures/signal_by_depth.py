"""Forward and backward signals by depth, weights and gradients by module, the loss."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from torch import Tensor, nn

from theodolite.core import TheodoliteError
from theodolite.instruments import tensors_in

from .contract import Found, Measure, number
from .guessing import CONSTANT, loss_of_a_guess
from .site import Site, logits_in, targets_in


class SignalMeasure(Measure):
    """Forward and backward signals of the network.

    ``forward_rms`` and ``forward_correlation`` describe the output of each block,
    ``backward_rms`` the loss's derivative by it; errors are standard errors over
    samples. ``input_condition`` is the largest variance of an input feature over the
    median one. ``loss_at_chance`` is the loss of a guess that ignores the inputs.
    ``n_zero_gradients`` counts trained parameters whose gradient is all zero, and
    ``zero_gradient`` names them.
    """

    name: ClassVar = "signal"

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield the loss, blocks by depth, then modules."""
        yield from _loss_rows(site)
        yield from _depth_rows(site)
        yield from _module_rows(site)
        yield from _zero_gradient_rows(site)


def _depth_rows(site: Site) -> Iterator[Found]:
    sounding = site.sounding
    for stretch in site.chart.stretches:
        labels = {
            "block": stretch.block.name,
            "depth": stretch.block.index,
            "n_samples": sounding.samples,
        }
        signal = sounding.forward.get(stretch.output)
        if signal is None:
            site.unsupported.append(
                f"{stretch.block.name}: what leaves it is made where it cannot be "
                "tapped, so it has no signal"
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
        if stretch.output in sounding.backward:
            value, error = sounding.backward[stretch.output]
            yield number("backward_rms", value, error, **labels)


def _module_rows(site: Site) -> Iterator[Found]:
    """Yield sizes of weights and gradients for each module with parameters."""
    owners: dict[str, list[str]] = {}
    parameters = dict(site.model.named_parameters())
    for name in parameters:
        owners.setdefault(name.rpartition(".")[0], []).append(name)
    for owner, names in owners.items():
        weights = [parameters[name].detach() for name in names]
        value = _rms(weights)
        yield number("weight_rms", value, site.rounding * value, module=owner)
        grads = [site.sounding.gradients.get(name) for name in names]
        known = [grad for grad in grads if grad is not None]
        if known:
            value = _rms(known)
            labels = {"module": owner, "n_samples": site.sounding.samples}
            yield number("gradient_rms", value, site.rounding * value, **labels)


def _zero_gradient_rows(site: Site) -> Iterator[Found]:
    """Yield the trained parameters that get no gradient, and their number."""
    gradients, seen = site.sounding.gradients, {"n_samples": site.sounding.samples}
    names = [n for n, g in gradients.items() if g.numel() and not bool(g.any())]
    of = {"n_parameters": len(gradients), **seen}
    yield number("n_zero_gradients", len(names), 0.0, **of)
    for name in names:
        labels = {"module": name.rpartition(".")[0], "parameter": name, **seen}
        yield number("zero_gradient", gradients[name].numel(), 0.0, **labels)


def _rms(tensors: list[Tensor]) -> float:
    total = sum(float(t.double().square().sum()) for t in tensors)
    return math.sqrt(total / max(sum(t.numel() for t in tensors), 1))


def _loss_rows(site: Site) -> Iterator[Found]:
    sounding = site.sounding
    targets = targets_in(site.first(sounding.samples))
    try:
        logits = logits_in(sounding.outputs).detach()
    except TheodoliteError:
        logits = None
    error = site.rounding * abs(sounding.loss)
    if logits is not None and isinstance(site.loss, nn.CrossEntropyLoss):
        error = max(error, _spread(site.loss, logits, targets))
    seen = {"n_samples": sounding.samples}
    yield number("loss", sounding.loss, error, **seen)
    yield from _input_rows(site)
    if logits is None:
        return
    chance = loss_of_a_guess(site, logits, targets)
    if chance is not None:
        guess = "the mean" if isinstance(site.loss, CONSTANT) else "equal chances"
        error = site.rounding * abs(chance)
        yield number("loss_at_chance", chance, error, guess=guess, **seen)
    flat = logits.double()
    rms = float(flat.square().mean().sqrt())
    yield number("logit_rms", rms, site.rounding * rms, **seen)
    if flat.ndim > 1 and flat.shape[-1] > 1:
        axis = 1 if _class_axis(site.loss, flat) == 1 else -1
        spread = flat.amax(axis) - flat.amin(axis)
        wide = spread.reshape(-1)
        error = float(wide.std()) / math.sqrt(len(wide)) if len(wide) > 1 else math.nan
        yield number("logit_spread", float(wide.mean()), error, **seen)


def _input_rows(site: Site) -> Iterator[Found]:
    """Yield the size of real inputs at the first weights; token ids have none."""
    batch = site.first(site.sounding.samples)
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    real = [
        tensor
        for tensor in tensors_in(batch[0] if paired else batch)
        if tensor.is_floating_point() and tensor.numel()
    ]
    if real:
        value = max(float(t.double().square().mean().sqrt()) for t in real)
        entries = [stretch.entry for stretch in site.chart.stretches[:1]]
        if entries and entries[0] in site.sounding.forward:  # scaled on the way
            value = site.sounding.forward[entries[0]].rms
        seen = {"n_samples": site.sounding.samples}
        yield number("input_rms", value, site.rounding * value, **seen)
        yield from _input_condition(site, real[0])


def _input_condition(site: Site, inputs: Tensor) -> Iterator[Found]:
    """Yield how much features differ in size, if weights read them unscaled.

    This is the largest variance of a feature over the median one, without constant
    features. A feature is a channel of images, else an entry along the last axis.
    """
    first = site.chart.stretches[:1]
    values = site.chart.anatomy.recording.values
    if inputs.ndim < 2 or not first or values[first[0].entry].source != "input":
        return
    axis = 1 if inputs.ndim in (4, 5) else inputs.ndim - 1
    rows = inputs.detach().double().movedim(axis, -1).reshape(-1, inputs.shape[axis])
    variances = rows.var(0, correction=0)
    variances = variances[variances > 0]
    if len(variances) < 2 or not bool(variances.isfinite().all()):
        return
    ratio = float(variances.max() / variances.median())
    # Two variances of n normal numbers, each with relative error sqrt(2/n).
    error = 2 * ratio / math.sqrt(len(rows))
    yield number("input_condition", ratio, error, n_samples=site.sounding.samples)


def _class_axis(loss: Any, logits: Tensor) -> int:
    return 1 if isinstance(loss, nn.CrossEntropyLoss) else logits.ndim - 1


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

"""Largest stable learning rates, and the noise of the gradient."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from torch import Tensor

from theodolite.instruments import (
    Batch,
    ExtremeEigenvalues,
    Hessian,
    Operator,
    samples_in,
)

from ..records.outcomes import NOT_RESOLVED
from .contract import Found, Measure, number
from .curvature import FEWEST, ends_of, error_of, leading_of, not_resolved
from .gradients import flat_gradient
from .in_use import InUse, bound_of, in_use, kind_of
from .metered import Counted, Preconditioned
from .noise_scale import PARTS, noise_scale, parts_of, products_of
from .preconditioner import scales_of
from .site import PRODUCT, Site


class RatesMeasure(Measure):
    r"""Largest stable learning rates of optimisers, and the gradient noise scale.

    ``stable_rate`` is the bound of :mod:`~theodolite.survey.measures.stability` at the
    largest eigenvalue, of $H$ or, for Adam and RMSprop, of $P^{-1/2} H P^{-1/2}$;
    ``stable_rate_low`` and ``stable_rate_high`` follow from the error of that
    eigenvalue; if its interval contains 0, all three are not resolved. Settings are
    those of the given optimiser, else momentum 0.9. Weight decay that acts through the
    gradient is added to the curvature. A noise scale without a finite error is not
    resolved.

    ``rate_over_stable`` is measured if the batch has curvature: the largest eigenvalue
    of $D^{1/2} H D^{1/2}$ with $D$ each parameter's rate over its own bound, and over
    $P$, 0 for parameters that the optimiser does not hold. See
    :mod:`~theodolite.survey.measures.in_use`.
    """

    name: ClassVar = "rates"
    share: ClassVar = 0.18

    def least(self, site: Site) -> float:
        """Return the gradients of the noise scale and of a few products."""
        return site.gradients(site.samples // PARTS) * PARTS + PRODUCT * (FEWEST + 2)

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield the noise scale, plain rates, adaptive rates, and the rate in use."""
        parts = parts_of(site, 0.25 * gradients)
        yield from _noise_rows(site, parts)
        gradients -= sum(site.gradients(samples_in(part) or 1) for part in parts)
        with Hessian(site.on(site.samples)) as hessian:
            top = leading_of(site, Counted(hessian, site))
            for name in ("gd", "momentum"):
                yield from _rate_rows(site, name, top, {"n_samples": site.samples})
            yield from _scaled_rows(site, hessian, top, gradients)


def _scaled_rows(
    site: Site, hessian: Hessian, plain: ExtremeEigenvalues, gradients: float
) -> Iterator[Found]:
    """Yield stable rates of adaptive optimisers, and compare the rate in use."""
    parameters = {n: site.model.get_parameter(n) for n in hessian.names}
    use = in_use(site.optimizer, parameters)
    scales, source = scales_of(site.optimizer, parameters, site.sounding.gradients)
    labels = {"n_samples": site.samples}
    apart = use is not None and not use.alike

    def top_of(operator: Operator) -> ExtremeEigenvalues:
        return ends_of(Counted(operator, site), site, gradients / (2 if apart else 1))

    if use is not None and use.plain:
        top = top_of(_as_used(hessian, use)) if apart else plain
        yield from _use_rows(site, use, top, labels)
    labels |= {"preconditioner": source}
    top = top_of(Preconditioned(hessian, scales))
    for name in ("adam", "rmsprop"):
        yield from _rate_rows(site, name, top, labels)
    if use is not None and not use.plain:
        top = top_of(_as_used(hessian, use, scales)) if apart else top
        yield from _use_rows(site, use, top, labels)


def _as_used(
    hessian: Hessian, use: InUse, scales: Tensor | float = 1.0
) -> Preconditioned:
    """Return the curvature scaled by each rate over its bound; below 1 it is stable."""
    own = use.scales().to(hessian.device) * scales
    return Preconditioned(hessian, own, shifts=use.shifts())


def _noise_rows(site: Site, parts: list[Batch]) -> Iterator[Found]:
    if len(parts) < 2:
        return
    size = samples_in(parts[0]) or 1
    site.passes += len(parts)
    gradients = [flat_gradient(site.problem, part) for part in parts]
    scale, error = noise_scale(products_of(gradients), size)
    several = size == site.samples and len(parts) > 1
    of = site.all_samples if several else site.samples
    labels: dict[str, Any] = {"n_samples": size, "n_parts": len(parts)}
    labels |= {"of_samples": of}
    if not math.isfinite(scale + error):
        scale, labels = math.nan, labels | {"nonfinite": NOT_RESOLVED}
    yield number("gradient_noise_scale", scale, error, **labels)
    each = site.samples
    yield number("noise_scale_per_batch", scale / each, error / each, **labels)


def _rate_rows(
    site: Site, name: str, top: ExtremeEigenvalues, labels: dict[str, Any]
) -> Iterator[Found]:
    """Yield the largest stable rate of all parameters, with its interval."""
    group: dict[str, Any] = {}
    if site.optimizer is not None and kind_of(site.optimizer) == name:
        group = site.optimizer.param_groups[0]
    plain = name in ("gd", "momentum")
    decay = float(group.get("weight_decay") or 0.0) if plain else 0.0
    curvature, error = float(top.eigenvalues[0]) + decay, error_of(top)
    facts = {**labels, "optimizer": name, "status": str(top.statuses[0])}
    if abs(curvature) <= error or math.isnan(curvature + error):
        for end in ("", "_low", "_high"):
            yield not_resolved(site, f"stable_rate{end}", **facts)
        return
    most = bound_of(name, group)
    ends = (curvature, curvature + error, curvature - error)
    rate, low, high = (most / end if curvature > 0 else math.inf for end in ends)
    half = max(rate - low, high - rate) if curvature > 0 else math.nan
    yield number("stable_rate", rate, half, **facts)
    yield number("stable_rate_low", low, half, **facts)
    yield number("stable_rate_high", high, half, **facts)


def _use_rows(
    site: Site, use: InUse, top: ExtremeEigenvalues, labels: dict[str, Any]
) -> Iterator[Found]:
    """Yield the rate in use, and its ratio to the stable rate."""
    used = max(use.rates)
    facts = {"optimizer": use.name}
    yield number("rate_in_use", used, 0.0, **facts)
    ratio, error = float(top.eigenvalues[0]), error_of(top)
    first = use.treatments[0]
    if use.alike and first is not None:
        factor = first.rate / first.most
        shift = first.decay if use.plain else 0.0
        ratio, error = factor * (ratio + shift), factor * error
    # Without statistics it is another landscape than the one trained on, and in a flat
    # one no rate is too small.
    if site.mode_asked is None and ratio > error:
        facts |= {**labels, "status": str(top.statuses[0])}
        yield number("rate_over_stable", ratio, error, **facts)

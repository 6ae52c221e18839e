"""Largest stable learning rates, and the noise of the gradient."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from torch import Tensor
from torch.nn import Parameter

from theodolite.instruments import ExtremeEigenvalues, Hessian, Operator, samples_in

from ..records.outcomes import NOT_RESOLVED
from .contract import Allowance, Found, Measure, number
from .curvature import FEW, FEWEST, ends_of, error_of, samples_for
from .in_use import InUse, bound_of, in_use, kind_of
from .metered import Metered, Preconditioned
from .noise_scale import gradients_of, noise_scale, parts_of, products_of
from .preconditioner import scales_of
from .signal_by_depth import zero_gradient_rows
from .site import Site


class RatesMeasure(Measure):
    r"""Largest stable learning rates of optimisers, and the gradient noise scale.

    ``stable_rate`` is the bound of :mod:`~theodolite.survey.measures.stability` at the
    largest eigenvalue, of $H$ or, for Adam and RMSprop, of $P^{-1/2} H P^{-1/2}$;
    ``stable_rate_low`` and ``stable_rate_high`` follow from the error of that
    eigenvalue; if its interval contains 0, all three are not resolved. Settings are
    those of the given optimiser, else momentum 0.9. Weight decay that acts through the
    gradient is added to the curvature. A noise scale without a finite error is not
    resolved.

    ``rate_over_stable`` is measured if the whole batch was used and has curvature:
    the largest eigenvalue of $D^{1/2} H D^{1/2}$ with $D$ each parameter's rate over
    its own bound, and over $P$, 0 for parameters that the optimiser does not hold. See
    :mod:`~theodolite.survey.measures.in_use`.
    """

    name: ClassVar = "rates"
    weight: ClassVar = 5.0

    def forecast(self, site: Site) -> float:
        """Return the seconds of a gradient, and of Lanczos unless it has run."""
        few = min(FEW, site.samples)
        run = 0.0 if site.leading else (FEWEST + 2) * site.product_s(few)
        return run + 2 * site.gradient_s(few)

    def rows(self, site: Site, allowance: Allowance) -> Iterator[Found]:
        """Yield the noise scale, plain rates, adaptive rates, and the rate in use."""
        yield from zero_gradient_rows(site)
        yield from _noise_rows(site, allowance, 0.25 * allowance.left())
        if site.leading is not None:
            yield from _plain_rows(site)
        samples = samples_for(site, 0.9 * allowance.left(), FEWEST + 2)
        with site.hessian(samples) as hessian:
            if site.leading is None:
                plain = Metered(hessian, allowance, site)
                fitting = 0.4 * allowance.left() / plain.warmed()
                site.leading = ends_of(plain, site, fitting), samples
                yield from _plain_rows(site)
            parameters = {n: site.model.get_parameter(n) for n in hessian.names}
            yield from _scaled_rows(site, hessian, allowance, samples, parameters)


def _plain_rows(site: Site) -> Iterator[Found]:
    assert site.leading is not None
    top, samples = site.leading
    for name in ("gd", "momentum"):
        yield from _rate_rows(site, name, top, {"n_samples": samples})


def _scaled_rows(
    site: Site,
    hessian: Hessian,
    allowance: Allowance,
    samples: int,
    parameters: dict[str, Parameter],
) -> Iterator[Found]:
    """Yield stable rates of adaptive optimisers, and compare the rate in use."""
    use = in_use(site.optimizer, parameters)
    scales, source = scales_of(site.optimizer, parameters, site.sounding.gradients)
    fewest = min(samples, site.sounding.samples) if "gradient" in source else samples
    labels = {"n_samples": fewest, "preconditioner": source}
    apart = use is not None and not use.alike
    if use is not None and use.plain:
        assert site.leading is not None
        top, seen = site.leading
        facts = {"n_samples": samples if apart else seen}
        if apart:
            top = _top(site, _as_used(hessian, use), allowance, 0.4)
        yield from _use_rows(site, use, top, facts)
    share = 0.4 if apart else 0.8
    top = _top(site, Preconditioned(hessian, scales), allowance, share)
    for name in ("adam", "rmsprop"):
        yield from _rate_rows(site, name, top, labels)
    if use is not None and not use.plain:
        if apart:
            top = _top(site, _as_used(hessian, use, scales), allowance, 0.8)
        yield from _use_rows(site, use, top, labels)


def _as_used(
    hessian: Hessian, use: InUse, scales: Tensor | float = 1.0
) -> Preconditioned:
    """Return the curvature scaled by each rate over its bound; below 1 it is stable."""
    own = use.scales().to(hessian.device) * scales
    return Preconditioned(hessian, own, shifts=use.shifts())


def _top(
    site: Site, inner: Operator, allowance: Allowance, share: float
) -> ExtremeEigenvalues:
    operator = Metered(inner, allowance, site)
    each = operator.warmed()
    return ends_of(operator, site, share * allowance.left() / each)


def _noise_rows(site: Site, allowance: Allowance, seconds: float) -> Iterator[Found]:
    parts = parts_of(site, seconds)
    if len(parts) < 2:
        return
    size = samples_in(parts[0]) or 1
    scale, error = noise_scale(
        products_of(list(gradients_of(site, parts, allowance))), size
    )
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
    facts = {**labels, "optimizer": name, "status": str(top.status)}
    if abs(curvature) <= error or math.isnan(curvature + error):
        for end in ("", "_low", "_high"):
            facts |= {"nonfinite": NOT_RESOLVED}
            yield number(f"stable_rate{end}", math.nan, **facts)
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
    facts = {"optimizer": use.name, "n_rates": len(use.rates)}
    yield number("rate_in_use", used, 0.0, **facts)
    ratio, error = float(top.eigenvalues[0]), error_of(top)
    first = use.treatments[0]
    if use.alike and first is not None:
        factor = first.rate / first.most
        shift = first.decay if use.plain else 0.0
        ratio, error = factor * (ratio + shift), factor * error
    # Statistics of fewer samples, or of none, make another landscape than the one
    # trained on, and of a flat one no rate is too small.
    whole = labels["n_samples"] == site.samples and site.mode_asked is None
    if whole and ratio > error:
        facts |= {**labels, "status": str(top.status)}
        yield number("rate_over_stable", ratio, error, **facts)

"""Learning rates that the landscape bears, and the noise of the gradient."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from theodolite.instruments import ExtremeEigenvalues, Hessian, samples_in
from theodolite.survey.measures.contract import Allowance, Found, Measure, number
from theodolite.survey.measures.curvature import (
    FEW,
    FEWEST,
    ends_of,
    error_of,
    samples_for,
)
from theodolite.survey.measures.metered import Metered, Preconditioned
from theodolite.survey.measures.noise_scale import (
    gradients_of,
    noise_scale,
    parts_of,
    products_of,
)
from theodolite.survey.measures.preconditioner import scales_of
from theodolite.survey.measures.site import Site
from theodolite.survey.measures.stability import bound

_ADAPTIVE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad")


class RatesMeasure(Measure):
    r"""Rates up to which optimisers are stable here, and the gradient noise scale.

    ``stable_rate`` is the bound of :mod:`~theodolite.survey.measures.stability` at the
    largest eigenvalue, of $H$ or, for Adam and RMSprop, of $P^{-1/2} H P^{-1/2}$;
    ``stable_rate_low`` and ``stable_rate_high`` follow from the error of that
    eigenvalue; ``rate_over_stable`` is told where that was measured on a whole batch
    and is above 0, and its error reaches to the smallest rate of any group.
    Settings are those of the optimiser given, else momentum 0.9. Weight
    decay that acts through the gradient is added to the curvature.
    """

    name: ClassVar = "rates"
    weight: ClassVar = 5.0

    def forecast(self, site: Site) -> float:
        """Return what a gradient takes, and a Lanczos run unless one was made."""
        few = min(FEW, site.samples)
        run = 0.0 if site.leading else (FEWEST + 2) * site.product_s(few)
        return run + 2 * site.gradient_s(few)

    def rows(self, site: Site, allowance: Allowance) -> Iterator[Found]:
        """Yield the noise scale, then plain rates, then adaptive ones."""
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
            yield from _adaptive_rows(site, hessian, allowance, samples)


def _plain_rows(site: Site) -> Iterator[Found]:
    assert site.leading is not None
    top, samples = site.leading
    for name in ("gd", "momentum"):
        yield from _rate_rows(site, name, top, {"n_samples": samples})


def _adaptive_rows(
    site: Site, hessian: Hessian, allowance: Allowance, samples: int
) -> Iterator[Found]:
    parameters = {n: site.model.get_parameter(n) for n in hessian.names}
    scales, source = scales_of(site.optimiser, parameters, site.sounding.gradients)
    operator = Metered(Preconditioned(hessian, scales), allowance, site)
    top = ends_of(operator, site, 0.8 * allowance.left() / operator.warmed())
    labels = {"n_samples": samples, "preconditioner": source}
    for name in ("adam", "rmsprop"):
        yield from _rate_rows(site, name, top, labels)


def _noise_rows(site: Site, allowance: Allowance, seconds: float) -> Iterator[Found]:
    parts = parts_of(site, seconds)
    if len(parts) < 2:
        return
    size = samples_in(parts[0]) or 1
    scale, error = noise_scale(
        products_of(list(gradients_of(site, parts, allowance))), size
    )
    labels = {"n_samples": size, "n_parts": len(parts)}
    yield number("gradient_noise_scale", scale, error, **labels)
    each = site.samples
    yield number("noise_scale_per_batch", scale / each, error / each, **labels)


def _rate_rows(
    site: Site, name: str, top: ExtremeEigenvalues, labels: dict[str, Any]
) -> Iterator[Found]:
    settings = _settings(site, name)
    decay = settings.pop("decay")
    curvature = float(top.eigenvalues[0]) + decay
    error = error_of(top)
    most = bound(**settings)
    rate = most / curvature if curvature > 0 else math.inf
    low = most / (curvature + error) if curvature + error > 0 else math.inf
    high = most / (curvature - error) if curvature > error else math.inf
    told = {**labels, "optimiser": name, "status": str(top.status)}
    half = max(rate - low, min(high, 1e300) - rate) if math.isfinite(rate) else math.nan
    yield number("stable_rate", rate, half, **told)
    yield number("stable_rate_low", low, half, **told)
    yield number("stable_rate_high", high, half, **told)
    if site.optimiser is None or name != kind_of(site.optimiser):
        return
    least, used = _range_of_rates(site.optimiser)
    yield number("rate_in_use", used, 0.0, optimiser=name)
    # Statistics of fewer samples make another landscape than the one trained on, and
    # of a flat one no rate is too small.
    if labels["n_samples"] == site.samples and curvature > error:
        ratio = used / rate
        spread = max(used / low - ratio, ratio - used / high, (used - least) / rate)
        yield number("rate_over_stable", ratio, spread, **told)


def kind_of(optimiser: torch.optim.Optimizer) -> str:
    """Return which of the rates belongs to an optimiser, or nothing."""
    kind = type(optimiser).__name__
    if kind == "SGD":
        momentum = any(group.get("momentum") for group in optimiser.param_groups)
        return "momentum" if momentum else "gd"
    if kind == "RMSprop":
        return "rmsprop"
    return "adam" if kind in _ADAPTIVE else ""


def _range_of_rates(optimiser: torch.optim.Optimizer) -> tuple[float, float]:
    rates = [float(group["lr"]) for group in optimiser.param_groups]
    return min(rates), max(rates)


def _settings(site: Site, name: str) -> dict[str, Any]:
    """Return what the bound of an optimiser depends on, by its settings or usual."""
    group: dict[str, Any] = {}
    if site.optimiser is not None and kind_of(site.optimiser) == name:
        group = site.optimiser.param_groups[0]
    if name == "adam":
        usual = (0.9,) if not group else (0.0,)  # Adagrad has no momentum
        beta = float(group.get("betas", usual)[0])
        return {
            "momentum": beta,
            "dampening": beta,
            "nesterov": "momentum_decay" in group,  # NAdam
            "decay": 0.0,
        }
    usual = 0.9 if name == "momentum" else 0.0
    decay = float(group.get("weight_decay") or 0.0)
    return {
        "momentum": float(group.get("momentum", usual)),
        "dampening": float(group.get("dampening", 0.0)),
        "nesterov": bool(group.get("nesterov", False)),
        "decay": decay if name in ("gd", "momentum") else 0.0,
    }

"""Largest stable learning rates, and the rate in use."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from torch import Tensor

from theodolite.core import NormMode
from theodolite.instruments import ExtremeEigenvalues, Hessian, Operator

from .context import PRODUCT, SurveyContext
from .contract import Found, Measure, number
from .curvature import FEWEST, Counted, ends_of, error_of, leading_of, not_resolved
from .optimizer_in_use import InUse, bound_of, in_use, kind_of, scales_of


class Preconditioned(Operator):
    r"""$S (H + \Delta) S$ for diagonals $S$ and $\Delta$, similar to $S^2(H + \Delta)$.

    Args:
        inner: $H$, symmetric.
        scales: The diagonal of $S$.
        shifts: The diagonal of $\Delta$; none by default.
    """

    symmetric = True

    def __init__(
        self, inner: Operator, scales: Tensor, *, shifts: Tensor | None = None
    ) -> None:
        self._inner = inner
        self._scales = scales.to(dtype=inner.torch_dtype, device=inner.device)
        self._shifts = None
        if shifts is not None and bool(shifts.any()):
            self._shifts = shifts.to(self._scales)
        self.shape, self.torch_dtype, self.device = (
            inner.shape,
            inner.torch_dtype,
            inner.device,
        )
        self.norm_mode: NormMode = getattr(inner, "norm_mode", NormMode.EVAL)

    def _matvec(self, vector: Tensor) -> Tensor:
        """Multiply one vector."""
        self.passes += 1
        scaled = self._scales * vector
        product = self._inner.matvec(scaled)
        if self._shifts is not None:
            product = product + self._shifts * scaled
        return self._scales * product


class RatesMeasure(Measure):
    r"""Largest stable learning rates of optimisers, and the rate in use.

    ``stable_rate`` is the bound of :mod:`~.optimizer_in_use` at the largest eigenvalue,
    of $H$ or, for Adam and RMSprop, of $P^{-1/2} H P^{-1/2}$; if the interval of the
    eigenvalue contains 0, it is not resolved. Settings are those of the given
    optimiser, else momentum 0.9. Weight decay that acts through the gradient is added
    to the curvature.

    ``rate_over_stable`` is measured if the batch has curvature: the largest eigenvalue
    of $D^{1/2} H D^{1/2}$ with $D$ each parameter's rate over its own bound, and over
    $P$, 0 for parameters that the optimiser does not hold.
    """

    name: ClassVar = "rates"
    share: ClassVar = 0.18

    def least(self, context: SurveyContext) -> float:
        """Return the gradients of a few products."""
        return PRODUCT * (FEWEST + 2)

    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Yield plain rates, adaptive rates, and the rate in use."""
        with Hessian(context.on(context.samples)) as hessian:
            top = leading_of(context, Counted(hessian, context))
            for name in ("gd", "momentum"):
                yield from _rate_rows(
                    context, name, top, {"n_samples": context.samples}
                )
            yield from _scaled_rows(context, hessian, top, gradients)


def _scaled_rows(
    context: SurveyContext,
    hessian: Hessian,
    plain: ExtremeEigenvalues,
    gradients: float,
) -> Iterator[Found]:
    """Yield stable rates of adaptive optimisers, and compare the rate in use."""
    parameters = {n: context.model.get_parameter(n) for n in hessian.names}
    use = in_use(context.optimizer, parameters)
    scales, source = scales_of(
        context.optimizer, parameters, context.first_pass.gradients
    )
    labels = {"n_samples": context.samples}
    apart = use is not None and not use.alike

    def top_of(operator: Operator) -> ExtremeEigenvalues:
        return ends_of(
            Counted(operator, context), context, gradients / (2 if apart else 1)
        )

    if use is not None and use.plain:
        top = top_of(_as_used(hessian, use)) if apart else plain
        yield from _use_rows(context, use, top, labels)
    labels |= {"preconditioner": source}
    top = top_of(Preconditioned(hessian, scales))
    for name in ("adam", "rmsprop"):
        yield from _rate_rows(context, name, top, labels)
    if use is not None and not use.plain:
        top = top_of(_as_used(hessian, use, scales)) if apart else top
        yield from _use_rows(context, use, top, labels)


def _as_used(
    hessian: Hessian, use: InUse, scales: Tensor | float = 1.0
) -> Preconditioned:
    """Return the curvature scaled by each rate over its bound; below 1 it is stable."""
    own = use.scales().to(hessian.device) * scales
    return Preconditioned(hessian, own, shifts=use.shifts())


def _rate_rows(
    context: SurveyContext, name: str, top: ExtremeEigenvalues, labels: dict[str, Any]
) -> Iterator[Found]:
    """Yield the largest stable rate of all parameters."""
    group: dict[str, Any] = {}
    if context.optimizer is not None and kind_of(context.optimizer) == name:
        group = context.optimizer.param_groups[0]
    plain = name in ("gd", "momentum")
    decay = float(group.get("weight_decay") or 0.0) if plain else 0.0
    curvature, error = float(top.eigenvalues[0]) + decay, error_of(top)
    facts = {**labels, "optimizer": name, "status": str(top.statuses[0])}
    if abs(curvature) <= error or math.isnan(curvature + error):
        yield not_resolved(context, "stable_rate", **facts)
        return
    most = bound_of(name, group)
    ends = (curvature, curvature + error, curvature - error)
    rate, low, high = (most / end if curvature > 0 else math.inf for end in ends)
    half = max(rate - low, high - rate) if curvature > 0 else math.nan
    yield number("stable_rate", rate, half, **facts)


def _use_rows(
    context: SurveyContext, use: InUse, top: ExtremeEigenvalues, labels: dict[str, Any]
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
    if context.mode_asked is None and ratio > error:
        facts |= {**labels, "status": str(top.statuses[0])}
        yield number("rate_over_stable", ratio, error, **facts)

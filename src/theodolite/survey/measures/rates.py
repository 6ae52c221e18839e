"""The largest stable learning rate, and the rate in use."""

import math
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from theodolite.instruments import ExtremeEigenvalues, Hessian, Operator

from .context import SurveyContext
from .contract import Found, number
from .curvature import ends_of, error_of, leading_of, not_resolved
from .optimizer_in_use import InUse, bound, in_use, scales_of


class Preconditioned(Operator):
    r"""$S (H + \Delta) S$ for diagonals $S$ and $\Delta$, similar to $S^2(H + \Delta)$.

    Args:
        inner: $H$.
        scales: The diagonal of $S$.
        shifts: The diagonal of $\Delta$.
    """

    symmetric = True

    def __init__(self, inner: Hessian, scales: Tensor, shifts: Tensor) -> None:
        self._inner = inner
        self.shape, self.norm_mode = inner.shape, inner.norm_mode
        self.torch_dtype, self.device = inner.torch_dtype, inner.device
        self._scales = scales.to(dtype=inner.torch_dtype, device=inner.device)
        self._shifts = shifts.to(self._scales)

    def product(self, vector: Tensor) -> Tensor:
        """Multiply one vector."""
        self.passes += 1
        scaled = self._scales * vector
        return self._scales * (self._inner.matvec(scaled) + self._shifts * scaled)


def no_rates(context: SurveyContext) -> str:
    """Refuse an adaptive optimiser that has made no step."""
    leaves = (p for p in context.net.model.parameters() if p.requires_grad)
    use = in_use(context.optimizer, {str(i): p for i, p in enumerate(leaves)})
    if use is None or use.plain or use.started:
        return ""
    kind = type(context.optimizer).__name__
    return (
        f"{kind} has made no step yet, so that its scales are not known: see the "
        "trial steps, or survey after a few steps"
    )


def rate_rows(context: SurveyContext, gradients: float) -> Iterator[Found]:
    r"""Largest stable learning rate of the optimiser, and the rate in use.

    ``rate_over_stable`` is the largest eigenvalue of $D^{1/2}(H + \Delta)D^{1/2}$ with
    $D$ each parameter's rate over its bound (see :mod:`~.optimizer_in_use`), and over
    the preconditioner of Adam and RMSprop; $\Delta$ is the weight decay that acts
    through the gradient. ``stable_rate`` is the rate in use divided by it; if groups
    have different rates, that of the largest with all of them changed alike. It is
    not resolved if the interval of the eigenvalue contains 0.

    Without an optimiser, ``stable_rate`` is that of gradient descent.
    """
    with Hessian(context.net.on(context.net.samples)) as hessian:
        names = hessian.names
        parameters = {name: context.net.model.get_parameter(name) for name in names}
        use = in_use(context.optimizer, parameters)
        if use is None or (use.plain and use.alike):
            top = leading_of(context, hessian)
        else:
            own = use.scales().to(hessian.device)
            if not use.plain:
                own = own * scales_of(context.optimizer, parameters)
            # Curvature scaled by each rate over its bound: below 1 it is stable.
            operator = Preconditioned(hessian, own, use.shifts())
            top = ends_of(operator, context, gradients)
    yield from _rate_rows(context, use, top)


def _rate_rows(
    context: SurveyContext, use: InUse | None, top: ExtremeEigenvalues
) -> Iterator[Found]:
    ratio, error, rate = float(top.eigenvalues[0]), error_of(top), 1.0
    name = "gd" if use is None else use.name
    facts: dict[str, Any] = {"optimizer": name}
    if use is None:
        ratio, error = ratio / bound(), error / bound()
    else:
        rate = max(use.rates)
        yield number("rate_in_use", rate, 0.0, **facts)
        first = use.treatments[0]
        if use.plain and use.alike and first is not None:
            factor = first.rate / first.most
            ratio, error = factor * (ratio + first.decay), factor * error
    facts |= {"n_samples": context.net.samples, "status": str(top.statuses[0])}
    if abs(ratio) <= error or math.isnan(ratio + error):
        yield not_resolved(context, "stable_rate", **facts)
        return
    ends = (ratio, ratio + error, ratio - error)
    stable, low, high = (rate / end if ratio > 0 else math.inf for end in ends)
    half = max(stable - low, high - stable) if ratio > 0 else math.nan
    yield number("stable_rate", stable, half, **facts)
    # Without statistics it is another landscape than the one trained on, and in a flat
    # one no rate is too small.
    if use is not None and context.net.mode_asked is None and ratio > 0:
        yield number("rate_over_stable", ratio, error, **facts)

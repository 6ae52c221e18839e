"""The largest and the smallest eigenvalue of the loss Hessian."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from torch import Tensor

from theodolite.core import NormMode, Status
from theodolite.instruments import (
    ExtremeEigenvalues,
    Hessian,
    Operator,
    extreme_eigenvalues,
)

from ..records.outcomes import NOT_RESOLVED
from .context import PRODUCT, SurveyContext
from .contract import Found, Measure, number

# Fewest and most products: fewer say little, more hardly improve the result.
FEWEST, _MOST = 5, 200
TOLERANCE = 0.01
# Error of an eigenvalue that did not converge, in multiples of its residual.
_UNSURE = 2.0
# Up to this number of parameters a full matrix is cheap.
_DENSE = 128
# Rounding of a product, in multiples of the one that was measured, by choice.
_ROUNDINGS = 10.0


class Counted(Operator):
    """An operator whose products count as passes of the survey.

    Its products are not compared with float64 again: ten times the
    ``graph_error`` of the context, which was measured on one product, bounds the
    rounding of all, by choice.

    Args:
        inner: The operator.
        context: Counts the passes.
    """

    def __init__(self, inner: Operator, context: SurveyContext) -> None:
        self._inner, self._site = inner, context
        self.shape, self.device = inner.shape, inner.device
        self.torch_dtype = inner.torch_dtype
        self.symmetric = inner.symmetric
        self.norm_mode: NormMode = getattr(inner, "norm_mode", context.net.problem.mode)
        self._largest = 0.0

    def product(self, vector: Tensor) -> Tensor:
        """Multiply one vector."""
        self.passes += 1
        self._site.net.passes += 1
        product = self._inner.matvec(vector)
        size = float(vector.norm())
        if size:
            self._largest = max(self._largest, float(product.norm()) / size)
        self.noise_norm = _ROUNDINGS * self._site.graph_error * self._largest
        return product


class CurvatureMeasure(Measure):
    """Largest and smallest eigenvalue of the loss Hessian of the batch.

    The error of a converged eigenvalue is a bound that holds with probability 99 %;
    otherwise it is twice the residual. An eigenvalue that did not converge and whose
    error bar includes zero is not resolved; ``needs_effort`` is the effort to try.
    """

    name: ClassVar = "curvature"
    share: ClassVar = 0.24

    def least(self, context: SurveyContext) -> float:
        """Return the gradients of a few products."""
        return PRODUCT * FEWEST

    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Yield both ends."""
        labels = {"n_samples": context.net.samples}
        with Hessian(context.net.on(context.net.samples)) as hessian:
            ends = leading_of(context, Counted(hessian, context))
        yield from _ends(context, ends, labels)


def leading_of(context: SurveyContext, operator: Operator) -> ExtremeEigenvalues:
    """Return the ends of the Hessian's spectrum, computed once for all measures.

    Args:
        context: Holds them once they are measured.
        operator: The Hessian of the whole batch.
    """
    if context.leading is None:
        gradients = CurvatureMeasure.share * context.effort
        context.leading = ends_of(operator, context, gradients)
    return context.leading


def ends_of(
    operator: Operator, context: SurveyContext, gradients: float
) -> ExtremeEigenvalues:
    """Return the largest and smallest eigenvalue, by products for this effort."""
    dense = operator.shape[1] if operator.shape[1] <= _DENSE else 0
    return extreme_eigenvalues(
        operator,
        ends="both",
        tol=TOLERANCE,
        stop="value",
        max_matvecs=max(FEWEST, min(_MOST, int(gradients / PRODUCT)), dense),
        seed=context.net.problem.seed,
        graph_error=context.graph_error,
    )


def _ends(
    context: SurveyContext, ends: ExtremeEigenvalues, labels: dict[str, int]
) -> Iterator[Found]:
    low = float(ends.smallest_errors[0])
    low *= 1.0 if ends.smallest_statuses[0].trusted else _UNSURE
    for quantity, value, error, status in (
        ("largest_eigenvalue", ends.eigenvalues[0], error_of(ends), ends.statuses[0]),
        ("smallest_eigenvalue", ends.smallest[0], low, ends.smallest_statuses[0]),
    ):
        facts = {**labels, "rank": 0, "status": str(status)}
        if status is Status.MAX_MATVECS and not abs(value) > error:
            yield not_resolved(context, quantity, **facts)
        else:
            yield number(quantity, value, error, **facts)


def not_resolved(context: SurveyContext, quantity: str, **labels: Any) -> Found:
    """Return a row for a number whose error bar includes zero, with what to try.

    More effort helps if it was products that ran out: four times as many, by choice.
    """
    facts: dict[str, Any] = {**labels, "nonfinite": NOT_RESOLVED}
    if labels.get("status") == str(Status.MAX_MATVECS):
        facts["needs_effort"] = round(4 * context.effort)
    return number(quantity, math.nan, **facts)


def error_of(ends: ExtremeEigenvalues) -> float:
    """Return the error of a largest eigenvalue.

    If Lanczos was stopped before it converged, the value is too small. Then the error
    is twice the residual, by choice.
    """
    if ends.statuses[0].trusted:
        return float(ends.sharp_errors[0])
    return _UNSURE * float(ends.errors[0])

"""The largest and the smallest eigenvalue of the loss Hessian."""

import math
from collections.abc import Iterator
from typing import Any

from theodolite.core import Status
from theodolite.instruments import (
    ExtremeEigenvalues,
    Hessian,
    Operator,
    extreme_eigenvalues,
)

from ..records.outcomes import NOT_RESOLVED
from .context import PRODUCT, SurveyContext
from .contract import Found, number

# Fewest and most products: fewer say little, more hardly improve the result.
FEWEST, _MOST = 5, 200
# Share of the effort.
CURVATURE_SHARE = 0.24
TOLERANCE = 0.01
# Error of an eigenvalue that did not converge, in multiples of its residual.
_UNSURE = 2.0
# Up to this number of parameters a full matrix is cheap.
_DENSE = 128


def curvature_rows(context: SurveyContext, gradients: float) -> Iterator[Found]:
    """Largest and smallest eigenvalue of the loss Hessian of the batch.

    The error of a converged eigenvalue is a bound that holds with probability 99 %;
    otherwise it is twice the residual. An eigenvalue that did not converge and whose
    error bar includes zero is not resolved; ``needs_effort`` is the effort to try.
    """
    with Hessian(context.net.on(context.net.samples)) as hessian:
        ends = leading_of(context, hessian)
    low = float(ends.smallest_errors[0])
    low *= 1.0 if ends.smallest_statuses[0].trusted else _UNSURE
    for name, value, error, status in (
        ("largest", ends.eigenvalues[0], error_of(ends), ends.statuses[0]),
        ("smallest", ends.smallest[0], low, ends.smallest_statuses[0]),
    ):
        facts = {"n_samples": context.net.samples, "rank": 0, "status": str(status)}
        if status is Status.MAX_MATVECS and not abs(value) > error:
            yield not_resolved(context, f"{name}_eigenvalue", **facts)
        else:
            yield number(f"{name}_eigenvalue", value, error, **facts)


def leading_of(context: SurveyContext, operator: Operator) -> ExtremeEigenvalues:
    """Return the ends of the Hessian's spectrum, computed once for all measures.

    Args:
        context: Holds them once they are measured.
        operator: The Hessian of the whole batch.
    """
    if context.leading is None:
        gradients = CURVATURE_SHARE * context.effort
        context.leading = ends_of(operator, context, gradients)
    return context.leading


def ends_of(
    operator: Operator, context: SurveyContext, gradients: float
) -> ExtremeEigenvalues:
    """Return the largest and smallest eigenvalue, by products for this effort."""
    dense = operator.shape[1] if operator.shape[1] <= _DENSE else 0
    reading = extreme_eigenvalues(
        operator,
        ends="both",
        tol=TOLERANCE,
        stop="value",
        max_matvecs=max(FEWEST, min(_MOST, int(gradients / PRODUCT)), dense),
        seed=context.net.problem.seed,
        graph_error=context.graph_error,
    )
    context.net.passes += reading.cost.passes
    return reading


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

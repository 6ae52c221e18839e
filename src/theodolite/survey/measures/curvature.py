"""Ends and trace of the Hessian's spectrum."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from theodolite.core import Status
from theodolite.instruments import (
    ExtremeEigenvalues,
    Hessian,
    Operator,
    extreme_eigenvalues,
    trace,
)

from ..records.outcomes import NOT_RESOLVED
from .contract import Found, Measure, number
from .metered import Counted
from .site import PRODUCT, Site

# Fewest and most products: fewer say little, more hardly improve the result.
FEWEST, _MOST, _MOST_TRACED = 5, 200, 60
TOLERANCE = 0.01
# Error of an eigenvalue that did not converge, in multiples of its residual.
_UNSURE = 2.0
# Up to this number of parameters a full matrix is cheap.
_DENSE = 128
# Least number of products for the trace, and the part of all products for the ends.
_TRACED, _ENDS = 6, 0.7


class CurvatureMeasure(Measure):
    """Largest and smallest eigenvalue of the loss Hessian of the batch, and its trace.

    The error of a converged eigenvalue is a bound that holds with probability 99 %;
    otherwise it is twice the residual. An eigenvalue that did not converge and whose
    error bar includes zero is not resolved; ``needs_effort`` is the effort to try.
    """

    name: ClassVar = "curvature"
    share: ClassVar = 0.34

    def least(self, site: Site) -> float:
        """Return the gradients of a few products."""
        return PRODUCT * (FEWEST + 3)

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield both ends, then the trace if enough products are left for it."""
        labels = {"n_samples": site.samples}
        with Hessian(site.on(site.samples)) as hessian:
            operator = Counted(hessian, site)
            yield from _ends(site, leading_of(site, operator), labels)
            products = int((1 - _ENDS) * gradients / PRODUCT)
            yield from _trace(operator, site, products, labels)


def leading_of(site: Site, operator: Operator) -> ExtremeEigenvalues:
    """Return the ends of the Hessian's spectrum, computed once for all measures.

    Args:
        site: Holds them once they are measured.
        operator: The Hessian of the whole batch.
    """
    if site.leading is None:
        gradients = _ENDS * CurvatureMeasure.share * site.effort
        site.leading = ends_of(operator, site, gradients)
    return site.leading


def ends_of(operator: Operator, site: Site, gradients: float) -> ExtremeEigenvalues:
    """Return the largest and smallest eigenvalue, by products for this effort."""
    dense = operator.shape[1] if operator.shape[1] <= _DENSE else 0
    return extreme_eigenvalues(
        operator,
        ends="both",
        tol=TOLERANCE,
        stop="value",
        max_matvecs=max(FEWEST, min(_MOST, int(gradients / PRODUCT)), dense),
        seed=site.seed,
        graph_error=site.graph_error,
    )


def _ends(
    site: Site, ends: ExtremeEigenvalues, labels: dict[str, int]
) -> Iterator[Found]:
    low = float(ends.smallest_errors[0])
    low *= 1.0 if ends.smallest_statuses[0].trusted else _UNSURE
    for quantity, value, error, status in (
        ("largest_eigenvalue", ends.eigenvalues[0], error_of(ends), ends.statuses[0]),
        ("smallest_eigenvalue", ends.smallest[0], low, ends.smallest_statuses[0]),
    ):
        facts = {**labels, "rank": 0, "status": str(status)}
        if status is Status.MAX_MATVECS and not abs(value) > error:
            yield not_resolved(site, quantity, **facts)
        else:
            yield number(quantity, value, error, **facts)


def not_resolved(site: Site, quantity: str, **labels: Any) -> Found:
    """Return a row for a number whose error bar includes zero, with what to try.

    More effort helps if it was products that ran out: four times as many, by choice.
    """
    facts: dict[str, Any] = {**labels, "nonfinite": NOT_RESOLVED}
    if labels.get("status") == str(Status.MAX_MATVECS):
        facts["needs_effort"] = round(4 * site.effort)
    return number(quantity, math.nan, **facts)


def error_of(ends: ExtremeEigenvalues) -> float:
    """Return the error of a largest eigenvalue.

    If Lanczos was stopped before it converged, the value is too small. Then the error
    is twice the residual, by choice.
    """
    if ends.statuses[0].trusted:
        return float(ends.sharp_errors[0])
    return _UNSURE * float(ends.errors[0])


def _trace(
    operator: Operator, site: Site, products: int, labels: dict[str, int]
) -> Iterator[Found]:
    size = operator.shape[1]
    dense = size if size <= _DENSE else 0
    if products < _TRACED and not dense:
        return
    products = max(min(_MOST_TRACED, products), dense)
    reading = trace(operator, max_matvecs=products, seed=site.seed)
    error = reading.trace_error + site.graph_error * abs(reading.trace)
    yield number("trace", reading.trace, error, **labels)
    yield number("trace_per_parameter", reading.mean, error / size, **labels)

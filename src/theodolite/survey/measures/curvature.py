"""Ends and trace of the Hessian's spectrum."""

from collections.abc import Iterator
from typing import ClassVar

from theodolite.instruments import (
    ExtremeEigenvalues,
    Operator,
    extreme_eigenvalues,
    trace,
)

from .contract import Allowance, Found, Measure, number
from .metered import Metered
from .site import Site

# Fewer products say little about the largest eigenvalue, more hardly improve it.
FEWEST, MOST = 5, 60
# With fewer samples, batch statistics and so the Hessian would differ too much.
FEW = 8
TOLERANCE = 0.01
# Error of an eigenvalue that did not converge, in multiples of its residual.
_UNSURE = 2.0
# Up to this number of parameters a full matrix is cheap.
_DENSE = 128
# Least number of products for the trace.
_TRACED = 6


class CurvatureMeasure(Measure):
    """Largest and smallest eigenvalue of the loss Hessian, and its trace.

    If a batch takes longer than the time limit, only its first samples are used, and
    ``n_samples`` of the rows says how many. The error of a converged eigenvalue is a
    bound that holds with probability 99 %; otherwise it is twice the residual.
    """

    name: ClassVar = "curvature"
    weight: ClassVar = 20.0

    def forecast(self, site: Site) -> float:
        """Return the seconds of a few products with few samples."""
        return (FEWEST + 3) * site.product_s(min(FEW, site.samples))

    def rows(self, site: Site, allowance: Allowance) -> Iterator[Found]:
        """Yield both ends, then the trace if time is left."""
        samples = samples_for(site, 0.8 * allowance.left(), FEWEST + 3)
        labels = {"n_samples": samples}
        with site.hessian(samples) as hessian:
            operator = Metered(hessian, allowance, site)
            each = operator.warmed()
            ends = ends_of(operator, site, 0.7 * allowance.left() / each)
            site.leading = ends, samples
            yield from _ends(ends, labels)
            yield from _trace(operator, site, allowance.left() / each, labels)


def samples_for(site: Site, seconds: float, products: int) -> int:
    """Return how many samples to use, so that these products fit the time."""
    samples = site.samples
    while samples > FEW and products * site.product_s(samples) > seconds:
        samples = max(samples // 2, FEW)
    return samples


def ends_of(operator: Operator, site: Site, fitting: float) -> ExtremeEigenvalues:
    """Return the largest and smallest eigenvalue, by as many products as fit."""
    dense = operator.shape[1] if operator.shape[1] <= _DENSE else 0
    return extreme_eigenvalues(
        operator,
        ends="both",
        tol=TOLERANCE,
        stop="value",
        max_matvecs=max(FEWEST, min(MOST, int(fitting)), dense),
        seed=site.seed,
        graph_error=site.graph_error,
    )


def _ends(ends: ExtremeEigenvalues, labels: dict[str, int]) -> Iterator[Found]:
    facts = {**labels, "rank": 0, "status": str(ends.status)}
    yield number("largest_eigenvalue", ends.eigenvalues[0], error_of(ends), **facts)
    error = ends.smallest_errors[0]
    error *= 1.0 if ends.smallest_statuses[0].trusted else _UNSURE
    yield number("smallest_eigenvalue", ends.smallest[0], error, **facts)


def error_of(ends: ExtremeEigenvalues) -> float:
    """Return the error of a largest eigenvalue.

    If Lanczos was stopped before it converged, the value is too small. Then the error
    is twice the residual, by choice.
    """
    if ends.statuses[0].trusted:
        return float(ends.sharp_errors[0])
    return _UNSURE * float(ends.errors[0])


def _trace(
    operator: Operator, site: Site, fitting: float, labels: dict[str, int]
) -> Iterator[Found]:
    size = operator.shape[1]
    dense = size if size <= _DENSE else 0
    if fitting < _TRACED and not dense:
        return
    products = max(min(MOST, int(fitting)), dense, _TRACED)
    reading = trace(operator, max_matvecs=products, seed=site.seed)
    error = reading.trace_error + site.graph_error * abs(reading.trace)
    yield number("trace", reading.trace, error, **labels)
    yield number("trace_per_parameter", reading.mean, error / size, **labels)

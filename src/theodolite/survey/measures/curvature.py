"""Ends and trace of the Hessian's spectrum."""

from collections.abc import Iterator
from typing import ClassVar

from theodolite.instruments import (
    ExtremeEigenvalues,
    Operator,
    extremes_of,
    trace_of,
)
from theodolite.survey.measures.contract import Allowance, Found, Measure, number
from theodolite.survey.measures.metered import Metered
from theodolite.survey.measures.site import Site

# Fewer products say little of the largest eigenvalue, more hardly add to a first look.
LEAST, MOST = 8, 60
# Fewer samples make statistics of batches, and so the Hessian, another one.
FEW = 8
TOLERANCE = 0.01
# Parameters up to which a whole matrix is cheap.
_DENSE = 300
# Products that the trace takes at least.
_TRACED = 6


class CurvatureMeasure(Measure):
    """Largest and smallest eigenvalue of the loss Hessian, and its trace.

    Of a batch that is too large for its allowance the first samples are taken, which
    rows say by ``n_samples``. Errors of eigenvalues suppose that Lanczos missed none.
    """

    name: ClassVar = "curvature"
    weight: ClassVar = 6.0

    def forecast(self, site: Site) -> float:
        """Return what few products with few samples take."""
        return (LEAST + 3) * site.product_s(min(FEW, site.samples))

    def rows(self, site: Site, allowance: Allowance) -> Iterator[Found]:
        """Yield both ends, then the trace if time is left."""
        samples = samples_for(site, 0.8 * allowance.left(), LEAST + 3)
        labels = {"n_samples": samples}
        with site.hessian(samples) as hessian:
            operator = Metered(hessian, allowance, site)
            found = ends_of(operator, site, 0.8 * allowance.left(), samples)
            site.leading = found, samples
            yield from _ends(found, labels)
            per_product = found.cost.wall_s / max(found.cost.passes, 1)
            yield from _trace(operator, site, allowance, per_product, labels)


def samples_for(site: Site, seconds: float, products: int) -> int:
    """Return how many samples let some products fit in a time, a few at least."""
    samples = site.samples
    while samples > FEW and products * site.product_s(samples) > seconds:
        samples = max(samples // 2, FEW)
    return samples


def ends_of(
    operator: Operator, site: Site, seconds: float, samples: int
) -> ExtremeEigenvalues:
    """Return both ends of a spectrum, by as many products as fit in a time."""
    fitting = int(seconds / max(site.product_s(samples), 1e-9))
    dense = operator.shape[1] <= _DENSE
    return extremes_of(
        operator,
        ends="both",
        tol=TOLERANCE,
        stop="value",
        max_matvecs=max(LEAST, min(MOST, fitting), operator.shape[1] if dense else 0),
        seed=site.seed,
        graph_error=site.graph_error,
    )


def _ends(found: ExtremeEigenvalues, labels: dict[str, int]) -> Iterator[Found]:
    told = {**labels, "rank": 0, "status": str(found.status)}
    value, error = found.eigenvalues[0], found.sharp_errors[0]
    yield number("largest_eigenvalue", value, error, **told)
    value, error = found.smallest[0], found.smallest_errors[0]
    yield number("smallest_eigenvalue", value, error, **told)


def _trace(
    operator: Operator,
    site: Site,
    allowance: Allowance,
    per_product: float,
    labels: dict[str, int],
) -> Iterator[Found]:
    fitting = int(allowance.left() / max(per_product, 1e-9))
    dense = operator.shape[1] <= _DENSE
    if fitting < 2 * _TRACED and not dense:
        return
    most = max(_TRACED, min(MOST, fitting // 2))
    products = operator.shape[1] if dense else most
    found = trace_of(operator, max_matvecs=max(products, _TRACED), seed=site.seed)
    rounding = site.graph_error * abs(found.trace)
    error, n = found.trace_error + rounding, operator.shape[1]
    yield number("trace", found.trace, error, **labels)
    yield number("trace_per_parameter", found.mean, error / n, **labels)

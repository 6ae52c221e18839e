r"""Percentile condition number of the loss Hessian, $|\lambda|_{\max}/|\lambda|_{(q)}$.

If the matrix is large, $|\lambda|_{\max}$ comes from Lanczos with its residual, and the
percentile from stochastic quadrature. At every $y$, quadrature gives an interval for
the share of eigenvalues in $[-y, y]$; all $y$ whose interval holds $q$ form the
interval of the percentile. A rule of $m$ nodes resolves no less than the weight of a
few nodes, so a percentile below about $4/m$ may have no lower end.
"""

from typing import Unpack

import numpy as np

from theodolite.core import ConfigError, Interpolation, Status, Stopwatch

from ..model.process_state import expected
from ..passes.batches import Batches
from ..solvers.lanczos import Placement
from ..solvers.quadrature import Quadrature, quadrature_of
from .extremes import extreme_eigenvalues
from .indices import rounding_of
from .model_instruments import (
    CurvatureSettings,
    Method,
    Subject,
    check_count,
    check_precision,
    goes_dense,
    measured,
    norms_of,
    relative_error,
    symmetric,
)
from .spectra import Condition, whole_spectrum

# Points at which the share within ±y is computed, evenly on a logarithmic axis: over
# the 12 decades above rounding neighbours differ by 7 %, which the interval includes.
_POINTS = 400


@measured
def condition(
    model: Subject,
    batches: Batches | None = None,
    *,
    quantile: float = 0.1,
    interpolation: Interpolation = "linear",
    n_probes: int = 8,
    steps: int = 64,
    max_matvecs: int = 200,
    tol: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "auto",
    basis_bytes: int = 4 * 2**30,
    basis: Placement = "auto",
    **settings: Unpack[CurvatureSettings],
) -> Condition:
    r"""Measure $|\lambda|_{\max}/|\lambda|_{(q)}$ of the loss Hessian.

    Args:
        model: Any module; or a :class:`Problem` or an operator, without ``batches``.
        batches: The module's data.
        quantile: $q$; 0 gives the ordinary condition number, of small matrices only.
        interpolation: How to read between two order statistics of a dense matrix.
        n_probes: Random vectors, if the matrix is large.
        steps: Products per vector.
        max_matvecs: Products for the largest eigenvalue.
        tol: Wanted ``ratio_error`` relative to the ratio; ``status`` says whether it
            was reached.
        level: Confidence of the interval.
        seed: Seed of the vectors.
        method: "dense", "products", or "auto": dense up to 1000 parameters if
            ``max_matvecs`` is as large.
        basis_bytes: Memory limit of all bases at a time.
        basis: Kept on "device", "host", "shared" over a team, or "auto" (fastest).
        settings: Those of :class:`Problem`, such as ``loss`` and ``norm_mode``, and
            ``operator``: ``Hessian``, ``GaussNewton``, ``Fisher`` or
            ``EmpiricalFisher``.

    References:
        Li et al. (2016), Demystifying ResNet, appendix B, for $q = 0.1$.

    Example:
        >>> import torch
        >>> from theodolite.instruments import MatrixOperator
        >>> matrix = torch.diag(torch.arange(1.0, 5.0))
        >>> operator = MatrixOperator(matrix, symmetric=True)
        >>> condition(operator, quantile=0.0).ratio
        4.0
    """
    operator = symmetric(model)
    if goes_dense(operator, method, max_matvecs + n_probes * steps):
        whole = whole_spectrum(operator)
        return whole.condition(quantile=quantile, interpolation=interpolation)
    check_count("n_probes", n_probes)
    check_count("steps", steps, 2)
    expected(max_matvecs + n_probes * steps, bounded=True)
    check_precision(tol)
    if not 0 < quantile < 1:
        raise ConfigError(
            f"quantile is {quantile!r}: of a large matrix pass a number between 0 and "
            "1, such as 0.1, or method='dense'"
        )
    watch, before = Stopwatch(), operator.passes
    top = extreme_eigenvalues(
        operator,
        ends="magnitude",
        tol=1e-4,
        max_matvecs=max_matvecs,
        seed=seed,
        method="products",
        basis_bytes=basis_bytes,
        basis=basis,
    )
    rule = quadrature_of(
        operator,
        n_probes=n_probes,
        steps=steps,
        seed=seed,
        basis_bytes=basis_bytes,
        basis=basis,
    )
    largest, error = abs(float(top.eigenvalues[0])), float(top.errors[0])
    floor = rounding_of(rule, operator)
    small, low, high = _percentile(rule, quantile, level, largest, floor)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, least, most = (
            float(np.divide(a, b))
            for a, b in (
                (largest, small),
                (largest - error, high),
                (largest + error, low),
            )
        )
    if not low > floor:
        most = float("inf")
    precision = relative_error((most - least) / 2, ratio)
    status = Status.worst([top.status, rule.status_at(precision, tol)])
    if small <= floor:
        status = Status.worst([status, Status.ROUNDING])
    return Condition(
        ratio=ratio,
        ratio_error=(most - least) / 2,
        ratio_low=least,
        ratio_high=most,
        largest=largest,
        largest_error=error,
        small=small,
        small_error=(high - low) / 2,
        quantile=quantile,
        level=level,
        precision=precision,
        tol=tol,
        status=status,
        **norms_of(operator),
        seed=seed,
        cost=watch.read(passes=operator.passes - before),
        method=rule.storage.told("Lanczos and stochastic Lanczos quadrature"),
    )


def _percentile(
    rule: Quadrature, quantile: float, level: float, largest: float, floor: float
) -> tuple[float, float, float]:
    """Return the percentile of magnitudes and the ends of its interval."""
    if not rule.nodes.size or not np.isfinite(largest) or largest == 0:
        return (0.0, 0.0, 0.0) if largest == 0 else (np.nan, np.nan, np.nan)
    least = max(floor, np.finfo(np.float64).tiny)
    points = np.geomspace(least, 1.01 * max(largest, least), _POINTS)
    band = rule.share(-points, points, level=level)
    # Between order statistics the distribution function has one step.
    slack = 1 / rule.size
    centre = points[min(np.searchsorted(band.centre, quantile), _POINTS - 1)]
    possible = (band.low - slack <= quantile) & (quantile <= band.high + slack)
    places = np.flatnonzero(possible)
    if not len(places):
        places = np.array([np.searchsorted(band.centre, quantile)])
    first, last = max(places[0] - 1, 0), min(places[-1] + 1, _POINTS - 1)
    low = 0.0 if places[0] == 0 else points[first]
    return float(centre), float(low), float(points[last])

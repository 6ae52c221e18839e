r"""Trace of the loss Hessian, by Hutch++ with a measured variance.

A probe $d$, uniform on a sphere in the complement of the sketch (dimension $N$), gives
$N\,d^\top A d/\|d\|^2$ with variance $2N(\operatorname{tr} A^2 - (\operatorname{tr}
A)^2/N)/(N+2)$. The product $Ad$ is already computed, and $N\|Ad\|^2/\|d\|^2$ has mean
$\operatorname{tr} A^2$: so the variance is measured, not taken from the spread of a few
numbers. On flat, decaying, indefinite and stepped spectra, the interval with Student's
factor covered the truth in 95 to 99 % of trials at a nominal 95 %; the usual one with
the sample spread did so in 87 to 96 %.

References:
    Meyer, Musco, Musco and Woodruff (2021), Hutch++: optimal stochastic trace
    estimation, SOSA.
"""

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
import torch

from theodolite.core import SampledReading, Scalar, Status, Stopwatch, stream

from ..model.process_state import expected
from ..operators.operator import Operator, products, strides
from ..operators.rounding_noise import SMALL, RoundingNoise, rounding_noise
from ..operators.vectors import dot, normal_vector
from ..passes.batches import Batches
from ..passes.forecast import rounds
from ..solvers.lanczos import Placement, Storage, storage_for
from ..solvers.sketch import Sketch, sketch_of, split
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
from .spectra import whole_matrix


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace(SampledReading):
    """Trace of a symmetric operator.

    ``trace_error`` is a standard error (one standard deviation), and ``trace_low`` to
    ``trace_high`` an interval of confidence ``level`` by Student's distribution with
    one degree of freedom less than there are probes. For a dense matrix both are bounds
    on rounding, including the model's graph. An estimate has status SAMPLED; with
    ``tol`` it is CONVERGED or IMPRECISE.

    Attributes:
        trace: The estimate.
        trace_error: Its standard error.
        trace_low: Lower end of the interval.
        trace_high: Upper end of the interval.
        mean: Trace divided by the order: the mean eigenvalue.
        mean_error: Its standard error.
        level: Confidence of the interval.
    """

    precision_of: ClassVar = "error over |trace|"

    trace: Scalar
    trace_error: Scalar
    trace_low: Scalar
    trace_high: Scalar
    mean: Scalar
    mean_error: Scalar
    level: float


@measured
def trace(
    model: Subject,
    batches: Batches | None = None,
    *,
    max_matvecs: int = 60,
    tol: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "auto",
    basis_bytes: int = 4 * 2**30,
    basis: Placement = "auto",
    **settings: Unpack[CurvatureSettings],
) -> Trace:
    """Measure the trace of the loss Hessian.

    Args:
        model: Any module; or a :class:`Problem` or an operator, without ``batches``.
        batches: The module's data.
        max_matvecs: Number of products; all are used.
        tol: Wanted standard error, relative to the trace; ``status`` says whether it
            was reached.
        level: Confidence of the interval.
        seed: Seed of the vectors.
        method: "dense", "products", or "auto": dense up to 1000 parameters if
            ``max_matvecs`` is as large.
        basis_bytes: Memory that the sketch may take; it is
            made smaller to stay within.
        basis: Kept on "device", "host", "shared" over a team, or "auto" (fastest).
        settings: Those of :class:`Problem`, such as ``loss`` and ``norm_mode``, and
            ``operator``: ``Hessian``, ``GaussNewton``, ``Fisher`` or
            ``EmpiricalFisher``.

    Example:
        >>> from theodolite.instruments import MatrixOperator
        >>> trace(MatrixOperator(torch.eye(3), symmetric=True)).trace
        3.0
    """
    operator = symmetric(model)
    check_count("max_matvecs", max_matvecs, 6)
    check_precision(tol)
    watch, before = Stopwatch(), operator.passes
    exact = goes_dense(operator, method, max_matvecs)
    expected(operator.shape[1] if exact else max_matvecs)
    if exact:
        value, error, half = _dense(operator)
        status, precision, estimator = Status.EXACT, 0.0, "dense"
    else:
        spent = split(max_matvecs, operator, basis_bytes=basis_bytes, copies=1)
        storage = storage_for(operator, basis, vectors=spent[0])
        value, error, factor = _estimate(operator, spent, level, seed, storage)
        rounding = 0.0
        if np.isfinite(error) and rounds(operator):
            # Below float64 the graph is rounded as well, and not at random.
            enough = RoundingNoise(np.empty(0), np.inf, SMALL * error)
            noise = rounding_noise(operator, enough=enough, rows=False)
            rounding = 0.0 if noise is None else noise.trace
        half, error = factor * error + rounding, error + rounding
        precision = relative_error(error, value)
        status = Status.of_sample(precision, tol)
        status = status if np.isfinite(value) else Status.NONFINITE
        estimator = storage.told("Hutch++") if spent[0] else "Hutchinson"
    n = operator.shape[1]
    return Trace(
        trace=value,
        trace_error=error,
        trace_low=value - half,
        trace_high=value + half,
        mean=value / n,
        mean_error=error / n,
        level=level,
        precision=precision,
        tol=tol,
        status=status,
        **norms_of(operator),
        seed=None if exact else seed,
        cost=watch.read(passes=operator.passes - before),
        method=estimator,
    )


def _dense(operator: Operator) -> tuple[float, float, float]:
    matrix, noise = whole_matrix(operator)
    return float(np.trace(matrix)), noise.trace, noise.trace


def _estimate(
    operator: Operator,
    spent: tuple[int, int],
    level: float,
    seed: int,
    storage: Storage,
) -> tuple[float, float, float]:
    """Return the estimate, its standard error and Student's factor."""
    from scipy.stats import t as student

    rank, n_probes = spent
    sketch = sketch_of(operator, rank=rank, seed=seed, keep=False, storage=storage)
    if not sketch.finite:
        return np.nan, np.inf, np.inf
    known = float(sketch.forms.sum())
    forms, squares = _probe(operator, sketch, n_probes, seed)
    if not np.isfinite(forms).all():
        return np.nan, np.inf, np.inf
    left = operator.shape[1] - rank
    value = float(forms.mean())
    spread = max(float(squares.mean()) - value**2 / left, 0.0)
    error = np.sqrt(2 * left / (left + 2) * spread / n_probes)
    # Rounding of the sums, if nothing is estimated.
    eps = torch.finfo(operator.torch_dtype).eps
    floor = eps * np.sqrt(operator.shape[1]) * max(sketch.scale, np.sqrt(spread))
    error = float(np.hypot(error, floor))
    factor = float(student.ppf((1 + level) / 2, n_probes - 1))
    return known + value, error, factor


def _probe(
    operator: Operator, sketch: Sketch, n_probes: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return estimates of the trace of the rest of the matrix, and of its square."""
    left = operator.shape[1] - sketch.directions.capacity
    forms, squares = np.empty(n_probes), np.empty(n_probes)
    for places in strides(n_probes, operator):
        drawn = (normal_vector(operator, stream(seed, "trace", p)) for p in places)
        probes = [sketch.rest(vector) for vector in drawn]
        pairs = zip(places, probes, products(operator, probes), strict=True)
        for p, probe, given in pairs:
            product, norm = sketch.rest(given), dot(probe, probe)
            forms[p] = left * dot(probe, product) / norm
            squares[p] = left * dot(product, product) / norm
    return forms, squares

r"""Diagonal of the loss Hessian, by Diag++ with standard errors.

The part of the diagonal within the sketch $Q$ is exact; random signs $z$ probe the rest
$A$, since $z_i (Az)_i$ has mean $A_{ii}$ and variance $\sum_{j\ne i} A_{ij}^2$. That
number is symmetric about its mean, so Student's interval from its sample spread holds
for few probes also.

References:
    Bekas, Kokiopoulou and Saad (2007), An estimator for the diagonal of a matrix.
    Baston and Nakatsukasa (2022), Stochastic diagonal estimation: probabilistic bounds
    and an improved algorithm (Diag++).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Unpack

import numpy as np
import torch
from torch import Tensor

from theodolite.core import Dims, SampledReading, Status, Stopwatch, stream

from ..model.process_state import expected
from ..operators.operator import Operator, products, strides
from ..operators.rounding_noise import SMALL, RoundingNoise, rounding_noise
from ..operators.vectors import sign_vector
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

# Entries that are processed in float64 at a time.
_STRETCH = 2**12


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagonal(SampledReading):
    """Diagonal of a symmetric operator, in the order of its parameters.

    ``diagonal_error`` is the standard error of each entry (one standard deviation). The
    interval of confidence ``level`` for one entry is ± ``factor`` standard errors, by
    Student's distribution. For a dense matrix the error is a bound on rounding,
    including the model's graph, and the factor is 1. An estimate has status SAMPLED;
    with ``tol`` it is CONVERGED or IMPRECISE.

    Attributes:
        diagonal: The entries.
        diagonal_error: Their standard errors.
        factor: Half width of the interval of confidence ``level``, in standard errors.
        level: Confidence.
    """

    precision_of: ClassVar = "error over norm"

    diagonal: Annotated[np.ndarray, Dims("entry")]
    diagonal_error: Annotated[np.ndarray, Dims("entry")]
    factor: float
    level: float


@measured
def diagonal(
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
) -> Diagonal:
    """Measure the diagonal of the loss Hessian.

    Args:
        model: Any module; or a :class:`Problem` or an operator, without ``batches``.
        batches: The module's data.
        max_matvecs: Number of products; all are used.
        tol: Wanted norm of the standard errors, relative to that of the diagonal;
            ``status`` says whether it was reached.
        level: Confidence level of ``factor``.
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
        >>> matrix = torch.diag(torch.tensor([1.0, 2.0]))
        >>> diagonal(MatrixOperator(matrix, symmetric=True)).diagonal
        array([1., 2.])
    """
    operator = symmetric(model)
    check_count("max_matvecs", max_matvecs, 6)
    check_precision(tol)
    watch, before = Stopwatch(), operator.passes
    exact = goes_dense(operator, method, max_matvecs)
    expected(operator.shape[1] if exact else max_matvecs)
    estimator = "dense"
    if exact:
        matrix, noise = whole_matrix(operator)
        value, error, factor = np.diagonal(matrix).copy(), noise.rows, 1.0
        status, precision = Status.EXACT, 0.0
    else:
        spent = split(max_matvecs, operator, basis_bytes=basis_bytes, copies=2)
        storage = storage_for(operator, basis, vectors=2 * spent[0])
        value, error, factor = _estimate(operator, spent, level, seed, storage)
        off, size = (float(np.linalg.norm(numbers)) for numbers in (error, value))
        # The squared norm of an estimate is too large by that of its error.
        precision = relative_error(off, max(size**2 - off**2, 0.0) ** 0.5)
        status = Status.of_sample(precision, tol)
        status = status if np.isfinite(size) else Status.NONFINITE
        estimator = storage.told("Diag++")
    return Diagonal(
        diagonal=value,
        diagonal_error=error,
        factor=factor,
        level=level,
        precision=precision,
        tol=tol,
        status=status,
        **norms_of(operator),
        seed=None if exact else seed,
        cost=watch.read(passes=operator.passes - before),
        method=estimator,
    )


def _estimate(
    operator: Operator,
    spent: tuple[int, int],
    level: float,
    seed: int,
    storage: Storage,
) -> tuple[np.ndarray, np.ndarray, float]:
    from scipy.stats import t as student

    n = operator.shape[1]
    rank, n_probes = spent
    factor = float(student.ppf((1 + level) / 2, n_probes - 1))
    sketch = sketch_of(operator, rank=rank, seed=seed, keep=True, storage=storage)
    mean, square = np.zeros(n), np.zeros(n)
    finite = sketch.finite
    for p, probe, product in _probes(operator, sketch, n_probes if finite else 0, seed):
        each = (probe * product).double().cpu().numpy()  # for Welford's update
        gap = each - mean
        mean += gap / (p + 1)
        square += gap * (each - mean)
        finite = finite and bool(np.isfinite(each).all())
    if not finite:
        return np.full(n, np.nan), np.full(n, np.inf), factor
    error = np.sqrt(square / (n_probes - 1) / n_probes)
    error = np.hypot(error, torch.finfo(operator.torch_dtype).eps * sketch.scale)
    if rounds(operator):  # the graph is rounded as well
        chance = SMALL * float(np.linalg.norm(error))
        noise = rounding_noise(
            operator, enough=RoundingNoise(np.empty(0), chance, np.inf)
        )
        error = error if noise is None else error + noise.rows
    return _known(sketch) + mean, error, factor


def _probes(
    operator: Operator, sketch: Sketch, n_probes: int, seed: int
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield random signs, and their products with the rest of the matrix."""
    for places in strides(n_probes, operator):
        probes = [sign_vector(operator, stream(seed, "diagonal", p)) for p in places]
        rest = [sketch.rest(probe) for probe in probes]
        for p, probe, product in zip(
            places, probes, products(operator, rest), strict=True
        ):
            yield p, probe, sketch.rest(product)


def _known(sketch: Sketch) -> np.ndarray:
    r"""Return the diagonal of $QZ^\top + ZQ^\top - Q(Q^\top Z)Q^\top$, $Z = HQ$."""
    assert sketch.products is not None  # the caller requested them
    q, z = sketch.directions, sketch.products
    inner, parts = q.inner(z), []
    pairs = zip(q.stretches(_STRETCH), z.stretches(_STRETCH), strict=True)
    for some, same in pairs:
        a, b = some.double(), same.double()
        parts.append((2 * (a * b).sum(0) - (a * (inner @ a)).sum(0)).cpu())
    return q.whole(torch.cat(parts)).numpy() if parts else np.zeros(q.length)

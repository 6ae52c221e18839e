"""Exact spectrum of a small Hessian, its condition number and its index."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Unpack

import numpy as np
import torch

from theodolite.core import (
    Dims,
    Interpolation,
    MeasurementError,
    Reading,
    SampledReading,
    Scalar,
    Status,
    Stopwatch,
    condition_of,
    index_of,
)

from ..model.process_state import expected, with_progress
from ..operators.loss_hessian import Hessian
from ..operators.operator import Operator
from ..operators.rounding_noise import RoundingNoise
from ..passes.batches import Batches
from ..passes.forecast import as_bytes, refuse_beyond
from ..passes.problem import ProblemSettings, problem_of, refuse_unknown, with_settings
from ..solvers.eigenpairs import Ends, Pairs, wanted
from .dense import DenseHessian, hessian, matrix_noise
from .model_instruments import (
    Curvature,
    Subject,
    checked_curvature,
    named,
    norms_of,
    refuse_settings,
    symmetric,
)

# From here on torch's solver takes about half the time of NumPy's, as the packages are
# commonly built (MKL and OpenBLAS); below, the two are alike.
_LARGE = 2000
# What `Operator.dense` allows by default: order 23,170.
_MATRIX_BYTES = 4 * 2**30


def whole_matrix(operator: Operator) -> tuple[np.ndarray, RoundingNoise]:
    """Return the symmetrised matrix and its distance from exact arithmetic."""
    order = operator.shape[1]
    refuse_beyond(
        8 * order**2,
        _MATRIX_BYTES,
        f"the dense matrix of order {order:,}",
        "pass method='products', or ask for a density in place of every eigenvalue",
    )
    expected(order)
    matrix = operator.dense(matrix_bytes=_MATRIX_BYTES)
    if not np.isfinite(matrix).all():
        raise MeasurementError(
            f"the matrix of {type(operator).__name__} holds NaN or infinity: check the "
            "data, the loss and the dtype"
        )
    # A block that is zero up to rounding, as of a bias before a batch norm, is
    # symmetric only up to rounding, which its error includes.
    noise, symmetric = matrix_noise(operator, matrix)
    if not symmetric:
        gap = float(np.abs(matrix - matrix.T).max(initial=0.0))
        raise MeasurementError(
            f"the matrix of {type(operator).__name__} is not symmetric: entries differ "
            f"by {gap:.1e} from their mirror, more than the rounding of its graph "
            "explains; pass a symmetric operator, or look for randomness and for "
            "derivatives written by hand in the model"
        )
    return (matrix + matrix.T) / 2, noise


def dense_pairs(operator: Operator, k: int, ends: Ends) -> Pairs:
    """Return pairs at the ends of the spectrum, from the whole matrix."""
    matrix, noise = whole_matrix(operator)
    values, columns = np.linalg.eigh(matrix)
    kept = np.unique(np.concatenate(wanted(values, k, ends)))
    steps = np.diff(values, prepend=-np.inf, append=np.inf)
    columns = columns[:, kept]
    rest = matrix @ columns - columns * values[kept]
    size, scale = len(values), float(np.abs(values).max(initial=0.0))
    eps = size * float(np.finfo(np.float64).eps)
    return Pairs(
        vectors=torch.from_numpy(columns.T.copy()),
        directions=torch.empty(0, size, device="cpu"),
        values=values[kept],
        bounds=np.linalg.norm(rest, axis=0),
        gaps=np.minimum(steps[1:], steps[:-1])[kept],
        scale=scale,
        noise=eps * scale + noise.norm,
        end=Status.EXACT,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Condition(SampledReading):
    r"""Percentile condition number $|\lambda|_{\max}/|\lambda|_{(q)}$.

    For a dense matrix every error is a bound on rounding, to first order. For an
    estimate, ``ratio_low`` to ``ratio_high`` is an interval of confidence ``level``,
    and ``ratio_error`` half its width, and likewise for ``small``; ``largest_error`` is
    a residual bound.

    For an estimate, ``status`` is SAMPLED; with ``tol`` it is CONVERGED or IMPRECISE.
    It is ROUNDING if the percentile is below the rounding of the matrix. The exact
    ratio may then be larger or smaller than ``ratio``, and ``ratio_error`` is infinite.
    ``ratio_low`` is a lower bound: the smallest possible ``largest`` divided by the
    largest possible percentile.
    """

    precision_of: ClassVar = "error over ratio"
    improved_by: ClassVar = "n_probes or steps"

    ratio: Scalar
    ratio_error: Scalar
    ratio_low: Scalar
    ratio_high: Scalar
    largest: Scalar
    largest_error: Scalar
    small: Scalar
    small_error: Scalar
    quantile: float
    level: float = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Index(SampledReading):
    r"""Fraction of negative eigenvalues.

    ``index`` counts eigenvalues below $-\rho$, ``near_zero`` those within $\rho$ of
    zero, with $\rho$ (``rounding``) the size below which a sign is not known.

    For a dense matrix ``index_error`` is ``near_zero``: the fraction of negative
    eigenvalues lies between ``index`` and ``index + index_error``. For an estimate,
    intervals have confidence ``level`` and errors are half their widths; the status is
    SAMPLED, and with ``tol`` it is CONVERGED or IMPRECISE.
    """

    precision_of: ClassVar = "error"
    improved_by: ClassVar = "steps or n_probes"

    index: Scalar
    index_error: Scalar
    index_low: Scalar
    index_high: Scalar
    near_zero: Scalar
    near_zero_error: Scalar
    rounding: float
    count: int
    level: float = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum(Reading):
    """All eigenvalues of the loss Hessian, descending.

    ``eigenvalue_error`` bounds the rounding error of each, including the model's
    graph: in float32 it is measured against float64, at 95 % confidence.
    """

    eigenvalues: Annotated[np.ndarray, Dims("rank", error="eigenvalue_error")]
    eigenvalue_error: Scalar

    def condition(
        self, *, quantile: float = 0.1, interpolation: Interpolation = "linear"
    ) -> Condition:
        """Return the percentile condition number of this spectrum."""
        spread = condition_of(
            self.eigenvalues,
            quantile=quantile,
            interpolation=interpolation,
            rounding=self.eigenvalue_error,
        )
        sure = spread.resolved
        return Condition(
            ratio=spread.ratio,
            ratio_error=spread.error,
            ratio_low=spread.least,
            ratio_high=spread.ratio + spread.error if sure else float("inf"),
            largest=spread.largest,
            largest_error=self.eigenvalue_error,
            small=spread.small,
            small_error=self.eigenvalue_error,
            quantile=quantile,
            status=Status.EXACT if sure else Status.ROUNDING,
            norm_mode=self.norm_mode,
            norm_layers=self.norm_layers,
            seed=self.seed,
            cost=self.cost,
            method=self.method,
        )

    def index(self, *, rounding: float | None = None) -> Index:
        """Return the fraction of negative eigenvalues."""
        limit = self.eigenvalue_error if rounding is None else rounding
        unsure = float(np.mean(np.abs(self.eigenvalues) <= limit))
        below = index_of(self.eigenvalues, rounding=limit)
        return Index(
            index=below,
            index_error=unsure,
            index_low=below,
            index_high=below + unsure,
            near_zero=unsure,
            near_zero_error=0.0,
            rounding=limit,
            count=len(self.eigenvalues),
            status=self.status,
            norm_mode=self.norm_mode,
            norm_layers=self.norm_layers,
            seed=self.seed,
            cost=self.cost,
            method=self.method,
        )


@with_settings
@with_progress()
def spectrum(
    model: Subject,
    batches: Batches | None = None,
    *,
    chunk: int = 64,
    matrix_bytes: int = 4 * 2**30,
    operator: Curvature = Hessian,
    **settings: Unpack[ProblemSettings],
) -> Spectrum:
    r"""Measure every eigenvalue of the loss Hessian of a small module.

    Args:
        model: Any module; or a :class:`Problem` or an operator, without ``batches``.
        batches: The module's data.
        chunk: Rows of a Hessian pulled back at a time.
        matrix_bytes: Memory that the matrix and its copies may take, unless an
            operator is given.
        operator: ``Hessian``, ``GaussNewton``, ``Fisher`` or ``EmpiricalFisher``.
        settings: Those of :class:`Problem`, such as ``loss`` and ``norm_mode``.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from theodolite.instruments import HalfSquareLoss
        >>> layer = nn.Linear(2, 1, bias=False, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
        >>> reading = spectrum(
        ...     layer, (x, x[:, :1]), loss=HalfSquareLoss(), norm_mode="batch"
        ... )
        >>> reading.eigenvalues, reading.condition(quantile=0.0).ratio
        (array([2. , 0.5]), 4.0)
    """
    refuse_unknown(spectrum, settings)
    matrix_bytes = as_bytes("matrix_bytes", matrix_bytes)
    if isinstance(model, Operator):
        refuse_settings("spectrum", batches, settings)
        return named(whole_spectrum(symmetric(model)), model)
    make = checked_curvature(operator)
    problem = problem_of(model, batches, settings)
    if make is Hessian:
        return spectrum_of(hessian(problem, chunk=chunk, matrix_bytes=matrix_bytes))
    with make(problem) as made:
        _refuse_large(made.shape[1], matrix_bytes)
        return named(whole_spectrum(made), made)


def _refuse_large(order: int, matrix_bytes: int) -> None:
    refuse_beyond(
        24 * order**2,
        matrix_bytes,
        f"the dense matrix of {order:,} parameters",
        "choose fewer with params=…, or raise matrix_bytes",
    )


def spectrum_of(reading: DenseHessian) -> Spectrum:
    r"""Return the spectrum of a Hessian that is already measured.

    The error is that of a backward stable symmetric eigensolver, $\varepsilon n
    \|H\|_2$, plus the norm of the matrix's own error.
    """
    watch = Stopwatch()
    noise = reading.norm_error
    if np.isnan(noise):
        noise = len(reading.matrix) * reading.matrix_error
    values, error = _eigenvalues(reading.matrix, noise)
    return Spectrum(
        eigenvalues=values,
        eigenvalue_error=error,
        status=reading.status,
        norm_mode=reading.norm_mode,
        norm_layers=reading.norm_layers,
        seed=reading.seed,
        cost=reading.cost + watch.read(),
        method=f"dense, {reading.method}",
    )


def whole_spectrum(operator: Operator) -> Spectrum:
    """Return every eigenvalue of a small symmetric operator, from its columns."""
    watch, before = Stopwatch(), operator.passes
    matrix, noise = whole_matrix(operator)
    values, error = _eigenvalues(matrix, noise.norm)
    return Spectrum(
        eigenvalues=values,
        eigenvalue_error=error,
        status=Status.EXACT,
        **norms_of(operator),
        cost=watch.read(passes=operator.passes - before),
        method="dense",
    )


def _eigenvalues(matrix: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    values = _solved(matrix)[::-1]
    size, scale = len(values), float(np.abs(values).max(initial=0.0))
    rounding = float(np.finfo(np.float64).eps) * size * scale
    return values.copy(), rounding + noise


def _solved(matrix: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of a symmetric matrix in ascending order."""
    if len(matrix) < _LARGE:
        return np.linalg.eigvalsh(matrix)
    given = (
        torch.from_numpy(matrix)
        if matrix.flags.writeable
        else torch.tensor(matrix, device="cpu")
    )
    return torch.linalg.eigvalsh(given).numpy()

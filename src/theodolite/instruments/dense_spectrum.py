"""Exact spectrum of a small Hessian, and what is read off it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import nn

from theodolite.core import (
    Interpolation,
    NormMode,
    Reading,
    Status,
    Stopwatch,
    condition_of,
    index_of,
)
from theodolite.instruments.dense_hessian import DenseHessian, hessian
from theodolite.instruments.objective import Batch, Loss


@dataclass(frozen=True, kw_only=True, eq=False)
class Condition(Reading):
    r"""Percentile condition number $|\lambda|_{\max}/|\lambda|_{(q)}$.

    ``status`` is ROUNDING where the percentile is below the rounding of the
    matrix: ``ratio`` is then a lower bound and ``ratio_error`` infinite.
    """

    dims: ClassVar = {
        "ratio": (),
        "ratio_error": (),
        "largest": (),
        "small": (),
        "eigenvalue_error": (),
    }
    error_of: ClassVar = {
        "ratio": "ratio_error",
        "largest": "eigenvalue_error",
        "small": "eigenvalue_error",
    }

    ratio: float
    ratio_error: float
    largest: float
    small: float
    eigenvalue_error: float
    quantile: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Index(Reading):
    """Fraction of negative eigenvalues.

    ``index_error`` is the fraction too close to zero to have a sign.
    """

    dims: ClassVar = {"index": (), "index_error": ()}
    error_of: ClassVar = {"index": "index_error"}

    index: float
    index_error: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum(Reading):
    """All eigenvalues of the loss Hessian, descending.

    ``eigenvalue_error`` bounds what rounding and asymmetry do to any of them.
    """

    dims: ClassVar = {"eigenvalues": ("rank",), "eigenvalue_error": ()}
    error_of: ClassVar = {"eigenvalues": "eigenvalue_error"}

    eigenvalues: np.ndarray
    eigenvalue_error: float

    def condition(
        self, *, quantile: float = 0.1, interpolation: Interpolation = "linear"
    ) -> Condition:
        """Return the percentile condition number of this spectrum."""
        found = condition_of(
            self.eigenvalues,
            quantile=quantile,
            interpolation=interpolation,
            rounding=self.eigenvalue_error,
        )
        return Condition(
            ratio=found.ratio,
            ratio_error=found.error,
            largest=found.largest,
            small=found.small,
            eigenvalue_error=self.eigenvalue_error,
            quantile=quantile,
            status=Status.EXACT if found.resolved else Status.ROUNDING,
            norm_mode=self.norm_mode,
            seed=self.seed,
            cost=self.cost,
            method=self.method,
        )

    def index(self) -> Index:
        """Return the fraction of negative eigenvalues."""
        unsure = float(np.mean(np.abs(self.eigenvalues) <= self.eigenvalue_error))
        return Index(
            index=index_of(self.eigenvalues, rounding=self.eigenvalue_error),
            index_error=unsure,
            status=self.status,
            norm_mode=self.norm_mode,
            seed=self.seed,
            cost=self.cost,
            method=self.method,
        )


def spectrum(
    model: nn.Module,
    batch: Batch,
    *,
    loss: Loss,
    norm_mode: NormMode | str,
    params: Sequence[str] | None = None,
) -> Spectrum:
    r"""Measure every eigenvalue of the loss Hessian of a small module.

    Args:
        model: Any module.
        batch: A pair (inputs, targets) for a loss module, or what ``loss`` takes.
        loss: A torch loss module, or ``loss(model, batch) -> scalar``.
        norm_mode: Statistics that normalisation layers use.
        params: Names of parameters; all that require a gradient by default.

    Example:
        >>> import torch
        >>> from theodolite.instruments import HalfSquareLoss
        >>> layer = nn.Linear(2, 1, bias=False, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
        >>> reading = spectrum(
        ...     layer, (x, x[:, :1]), loss=HalfSquareLoss(), norm_mode="batch"
        ... )
        >>> reading.eigenvalues, reading.condition(quantile=0.0).ratio
        (array([2. , 0.5]), 4.0)
    """
    return spectrum_of(
        hessian(model, batch, loss=loss, norm_mode=norm_mode, params=params)
    )


def spectrum_of(reading: DenseHessian) -> Spectrum:
    r"""Return the spectrum of a Hessian that was measured already.

    The error is that of a backward stable symmetric eigensolver, $\varepsilon n
    \|H\|_2$, plus the norm of the asymmetry that was averaged away.
    """
    watch = Stopwatch()
    values = np.linalg.eigvalsh(reading.matrix)[::-1]
    size = len(values)
    rounding = float(np.finfo(np.float64).eps) * size * np.abs(values).max(initial=0.0)
    return Spectrum(
        eigenvalues=values.copy(),
        eigenvalue_error=float(rounding + size * reading.matrix_error),
        status=reading.status,
        norm_mode=reading.norm_mode,
        seed=reading.seed,
        cost=reading.cost + watch.read(),
        method=f"dense, {reading.method}",
    )


def condition(
    model: nn.Module,
    batch: Batch,
    *,
    loss: Loss,
    norm_mode: NormMode | str,
    params: Sequence[str] | None = None,
    quantile: float = 0.1,
    interpolation: Interpolation = "linear",
) -> Condition:
    r"""Measure $|\lambda|_{\max}/|\lambda|_{(q)}$ of the loss Hessian.

    References:
        Li et al. (2016), Demystifying ResNet, appendix B, for $q = 0.1$.
    """
    found = spectrum(model, batch, loss=loss, norm_mode=norm_mode, params=params)
    return found.condition(quantile=quantile, interpolation=interpolation)


def index(
    model: nn.Module,
    batch: Batch,
    *,
    loss: Loss,
    norm_mode: NormMode | str,
    params: Sequence[str] | None = None,
) -> Index:
    """Measure the fraction of negative eigenvalues of the loss Hessian."""
    found = spectrum(model, batch, loss=loss, norm_mode=norm_mode, params=params)
    return found.index()

"""Numbers computed from a list of eigenvalues.

Theory and instruments both end in eigenvalues; what is computed from them is defined
here once.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .errors import ConfigError

Interpolation = Literal["linear", "lower", "higher", "nearest", "midpoint"]


@dataclass(frozen=True)
class PercentileCondition:
    r"""A percentile condition number $|\lambda|_{\max}/|\lambda|_{(q)}$.

    Where an eigenvalue is NaN or infinite, all numbers are NaN and not resolved.

    Attributes:
        ratio: The condition number; infinite where the percentile is 0.
        largest: $|\lambda|_{\max}$.
        small: $|\lambda|_{(q)}$.
        error: Bound on the rounding error of ``ratio``; infinite where ``small`` is
            not distinguishable from zero.
        resolved: False where ``small`` is below the rounding of its matrix: ``ratio``
            may then be above the exact one as well as below it.
        least: Lower bound on the exact ratio, $(|\lambda|_{\max} - e)/
            (|\lambda|_{(q)} + e)$ with $e$ the error of the eigenvalues.
    """

    ratio: float
    largest: float
    small: float
    error: float
    resolved: bool
    least: float


def condition_of(
    eigenvalues: np.ndarray,
    *,
    quantile: float = 0.1,
    interpolation: Interpolation = "linear",
    rounding: float | None = None,
) -> PercentileCondition:
    r"""Return the percentile condition number of a spectrum.

    ``interpolation`` is NumPy's: where the percentile falls on the boundary between
    two distinct values the choice shows in the second digit, so it is an argument.

    Args:
        eigenvalues: Real eigenvalues, in any order.
        quantile: $q$; 0 gives the ordinary condition number.
        interpolation: How to read between two order statistics.
        rounding: Absolute error of the eigenvalues; $\varepsilon n |\lambda|_{\max}$
            by default, the usual bound for a symmetric eigensolver.

    References:
        Li et al. (2016), Demystifying ResNet, appendix B.

    Example:
        >>> condition_of(np.array([-2.0, 1.0, 4.0]), quantile=0.0).ratio
        4.0
    """
    size = np.sort(np.abs(_spectrum(eigenvalues)))
    if not 0 <= quantile < 1:
        raise ConfigError(f"quantile {quantile} is not in [0, 1): try 0.1")
    if rounding is not None and not rounding >= 0:
        raise ConfigError(f"rounding {rounding} is not from 0 up: try None")
    if not np.isfinite(size).all():
        lost = float("nan")
        return PercentileCondition(lost, lost, lost, lost, resolved=False, least=lost)
    largest = float(size[-1])
    small = float(np.quantile(size, quantile, method=interpolation))
    if rounding is None:
        rounding = float(np.finfo(np.float64).eps) * size.size * largest
    resolved = small > rounding
    ratio = largest / small if small > 0 else float("inf")
    error = (largest + rounding) / (small - rounding) - ratio if resolved else np.inf
    least = max(largest - rounding, 0.0) / (small + rounding) if largest else 0.0
    return PercentileCondition(ratio, largest, small, float(error), resolved, least)


def index_of(eigenvalues: np.ndarray, *, rounding: float = 0.0) -> float:
    """Return the fraction of eigenvalues below ``-rounding``; NaN if one is NaN.

    Example:
        >>> index_of(np.array([-1.0, 0.0, 1.0, 2.0]))
        0.25
    """
    values = _spectrum(eigenvalues)
    if np.isnan(values).any():
        return float("nan")
    return float(np.mean(values < -abs(rounding)))


def _spectrum(eigenvalues: np.ndarray) -> np.ndarray:
    values = np.asarray(eigenvalues, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ConfigError(
            f"eigenvalues have shape {values.shape}: pass a list of at least one"
        )
    return values

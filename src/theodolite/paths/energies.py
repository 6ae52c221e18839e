r"""Energies by path length, with standard errors over samples.

Of coefficients $c_{mr}$ of sample $m$: the energy $E_r$ is the mean over samples of the
mean square of $c_{mr}$, its share $p_r = E_r / \sum_s E_s$; effective depth and spread
are mean and standard deviation of $r$ under $p$. Errors of ratios are by linearisation.
"""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Energies:
    """What one polynomial's coefficients say, each number with its error.

    Attributes:
        energy: Mean square of a coefficient.
        share: Of all energy.
        alignment: Product with the sum of all, as a share of its square; adds up to 1.
        depth: Mean of the degree under the shares.
        spread: Standard deviation of the degree under the shares.
    """

    energy: np.ndarray
    energy_error: np.ndarray
    share: np.ndarray
    share_error: np.ndarray
    alignment: np.ndarray
    alignment_error: np.ndarray
    depth: float
    depth_error: float
    spread: float
    spread_error: float


def energies_of(squares: np.ndarray, products: np.ndarray) -> Energies:
    """Return energies from what each sample contributes.

    Args:
        squares: Mean square of every coefficient, shape (samples, degrees).
        products: Mean product of every coefficient with their sum, of that shape.
    """
    degrees = np.arange(squares.shape[1])
    energy = squares.mean(0)
    total = energy.sum()
    share = energy / total
    depth = float(share @ degrees)
    variance = float(share @ (degrees - depth) ** 2)
    whole = products.sum(1, keepdims=True)
    alignment = products.mean(0) / whole.mean()
    spread = math.sqrt(variance)
    moved = (squares @ (degrees - depth)) / total
    widened = (squares @ ((degrees - depth) ** 2 - variance)) / total
    return Energies(
        energy=energy,
        energy_error=standard_error(squares),
        share=share,
        share_error=standard_error((squares - share * squares.sum(1)[:, None]) / total),
        alignment=alignment,
        alignment_error=standard_error((products - alignment * whole) / whole.mean()),
        depth=depth,
        depth_error=float(standard_error(moved)),
        spread=spread,
        spread_error=float(standard_error(widened)) / (2 * spread) if spread else 0.0,
    )


def standard_error(values: np.ndarray) -> np.ndarray:
    """Return the standard error of a mean over the first axis; infinite for one."""
    count = len(values)
    if count < 2:
        return np.full(values.shape[1:], math.inf)
    return values.std(axis=0, ddof=1) / math.sqrt(count)

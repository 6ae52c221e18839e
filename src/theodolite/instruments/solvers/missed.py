r"""How large an eigenvalue may be that Lanczos has not shown, but for a stated chance.

A start that is uniform on the sphere of $\mathbb R^N$ has a share $w = (u \cdot g)^2$
in any one eigenvector $u$, Beta distributed with parameters $1/2$ and $(N-1)/2$: below
its quantile $q$ with probability $\delta$ only, whatever the matrix. The start's
spectral measure then has an atom of $q$ or more at that eigenvalue $\lambda$; and an
atom is at most the Christoffel number, $1/\sum_{j \le m} p_j(\lambda)^2$ with $p_j$ the
orthonormal polynomials of the measure, which the recurrence of Lanczos holds. Where
that number is below $q$ there is no eigenvalue, but with probability $\delta$. Beyond
the outermost Ritz values the sum grows, so that one point bounds all that lies outside.

A start $r + g$ with any fixed $r$ does as well: the density of $u \cdot g$ is symmetric
and has one peak (for $N \ge 3$), so that a shift makes no interval about 0 likelier.

References:
    van Dorsselaer, Hochstenbach and van der Vorst (2000), Computing probabilistic
    bounds for extreme eigenvalues of symmetric matrices with the Lanczos method, SIAM
    J. Matrix Anal. 22; they take the last polynomial in place of the sum.
    Golub and Meurant (2010), Matrices, Moments and Quadrature, §2 (Christoffel
    numbers).
"""

import numpy as np


def least_share(size: int, chance: float) -> float:
    """Return the share of a direction that a random start misses with a chance.

    Example:
        >>> round(least_share(1000, 0.01) * 1000, 6)
        0.000157
    """
    from scipy.special import betaincinv

    # On the line and in the plane the density has no single peak at 0, and Lanczos is
    # exhausted before a bound would be wanted.
    return float(betaincinv(0.5, (size - 1) / 2, chance)) if size > 2 else 0.0


def excluded(
    diagonal: np.ndarray, below: np.ndarray, point: float, share: float
) -> bool:
    r"""Whether no eigenvalue with this share of the start lies at or beyond a point.

    Args:
        diagonal: $\alpha_0, \dots, \alpha_{m-1}$ of the recurrence.
        below: $\beta_1, \dots, \beta_m$, the last being the coupling to what comes
            next.
        point: Outside of all Ritz values, on the side that is asked about.
        share: Least mass of an eigenvalue.
    """
    if share <= 0:
        return False
    before, here, total, last = 0.0, 1.0, 1.0, 0.0
    for alpha, beta in zip(diagonal, below, strict=True):
        if beta == 0:
            return True
        before, here = here, ((point - alpha) * here - last * before) / beta
        total, last = total + here**2, beta
        if total * share > 1:
            return True
    return False


def reach(
    diagonal: np.ndarray,
    below: np.ndarray,
    top: float,
    share: float,
) -> float:
    """Return the most that an eigenvalue may be which Lanczos has not shown.

    Args:
        diagonal: As for :func:`excluded`.
        below: As there.
        top: The largest Ritz value.
        share: Least mass of an eigenvalue.
    """
    if share <= 0:
        return float("inf")
    scale = max(float(np.abs(diagonal).max()), float(np.max(below)), 1e-300)
    low, high = 0.0, 1e-12 * scale
    while not excluded(diagonal, below, top + high, share):
        low, high = high, 4 * high
    for _ in range(30):
        middle = (low + high) / 2
        if excluded(diagonal, below, top + middle, share):
            high = middle
        else:
            low = middle
    return top + high

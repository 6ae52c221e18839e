r"""Singular values of a multiple of the identity plus a large random matrix.

Let $A$ be $n \times n$ with independent entries of mean 0 and variance $\sigma^2/n$.
As $n \to \infty$ the squared singular values of $cI + A$ have a law whose Stieltjes
transform $m(z)$ solves

$$ m = \Bigl(\frac{c^2}{w} - w z\Bigr)^{-1}, \qquad w = 1 + \sigma^2 m, $$

that is the cubic $(w - 1)(c^2 - z w^2) = \sigma^2 w$. At $c = 0$ it is the quarter
circle on $[0, 2\sigma]$. Ends of the support are where $z(w) = c^2/w^2 -
\sigma^2/(w(w-1))$ is stationary: roots of
$2(c^2-\sigma^2) w^2 + (\sigma^2 - 4c^2) w + 2c^2 = 0$.

Notation: $c \ge 0$ shift; $\sigma > 0$ deviation.

References:
    Dozier & Silverstein (2007), On the empirical distribution of eigenvalues of large
    dimensional information-plus-noise-type matrices, eq. (1.1).
"""

import numpy as np

from theodolite.core import ConfigError, Numbers, as_integer, as_numbers

# Nodes of the quadrature; the density has square roots at its ends, which the
# substitution by a cosine removes.
_NODES = 4_000


def shifted_singular_edges(
    *, deviation: float, shift: float = 1.0
) -> tuple[float, float]:
    r"""Return the least and the largest singular value of $cI + A$ in the limit.

    The least is 0 for $c \le \sigma$.

    Example:
        >>> low, high = shifted_singular_edges(deviation=1 / 3**0.5)
        >>> f"{low**2:.6f} {high**2:.6f}"  # 1/12 and 32/9
        '0.083333 3.555556'
    """
    deviation, shift = _checked(deviation, shift)
    square, noise = shift**2, deviation**2
    if shift == 0:
        return 0.0, 2 * deviation
    # The polynomial loses its leading term at c = sigma.
    leading = 2 * (square - noise)
    terms = [leading] if abs(leading) > 1e-14 * square else []
    roots = np.roots([*terms, noise - 4 * square, 2 * square]).real
    places = square / roots**2 - noise / (roots * (roots - 1))
    low = max(0.0, float(places.min())) if shift > deviation else 0.0
    return float(np.sqrt(low)), float(np.sqrt(places.max()))


def shifted_singular_density(
    points: Numbers, *, deviation: float, shift: float = 1.0
) -> np.ndarray:
    r"""Return the density of the singular values of $cI + A$ at points, in the limit.

    Example:
        >>> shifted_singular_density([1.0], deviation=1.0, shift=0.0).round(6)
        array([0.551329])
    """
    deviation, shift = _checked(deviation, shift)
    x = as_numbers("points", points, "points")
    square, noise = shift**2, deviation**2
    # In y = x w the cubic keeps its leading term at x = 0:
    # y³ - x y² - (c² - σ²) y + c² x = 0.
    companion = np.zeros((len(x), 3, 3))
    companion[:, 1, 0] = companion[:, 2, 1] = 1
    companion[:, 0, 2] = -square * x
    companion[:, 1, 2] = square - noise
    companion[:, 2, 2] = x
    rising = np.linalg.eigvals(companion).imag.max(axis=1)
    # p(x) = 2x Im m(x²)/π, with Im m = Im w/σ² and x Im w = Im y.
    return 2 * rising / (np.pi * noise)


def shifted_singular_shares(
    shares: int, *, deviation: float, shift: float = 1.0
) -> np.ndarray:
    r"""Return the mean singular value of $cI + A$ in each of equal shares, ascending.

    The first number is the mean of the least ``1/shares`` of all singular values.

    Example:
        >>> shifted_singular_shares(2, deviation=0.5, shift=0.0).round(4)
        array([0.1991, 0.6498])
    """
    as_integer("shares", shares, 1)
    low, high = shifted_singular_edges(deviation=deviation, shift=shift)
    angle = (np.arange(_NODES) + 0.5) * np.pi / _NODES
    x = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    weight = shifted_singular_density(x, deviation=deviation, shift=shift)
    weight = weight * np.sin(angle)
    mass = np.concatenate([[0.0], np.cumsum(weight / weight.sum())])
    first = np.concatenate([[0.0], np.cumsum(x * weight / weight.sum())])
    ends = np.interp(np.linspace(0, 1, shares + 1), mass, first)
    return np.diff(ends) * shares


def _checked(deviation: float, shift: float) -> tuple[float, float]:
    for name, value, least in (("deviation", deviation, None), ("shift", shift, 0.0)):
        number = isinstance(value, int | float | np.number)
        fits = number and not isinstance(value, bool) and np.isfinite(value)
        if not fits or not (value > 0 or value == least):
            wanted = "a positive number" if least is None else "a number from 0 up"
            raise ConfigError(f"{name} is {value!r}: pass {wanted}")
    return float(deviation), float(shift)

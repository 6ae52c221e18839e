r"""Eigenvalues of the Gaussian orthogonal ensemble at finite size, by quadrature.

A matrix has diagonal entries of variance 2 and off-diagonal ones of variance 1; its
eigenvalues have the density $\prod |\lambda_i - \lambda_j|\,e^{-\sum\lambda^2/4}$ up to
a factor, and spread over about $\pm 2\sqrt n$. Their correlations follow from Hermite
functions $\varphi_j(s) = He_j(s)\,e^{-s^2/4} / \sqrt{j!\sqrt{2\pi}}$, orthonormal.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre
from scipy.linalg import lu_factor, lu_solve

from theodolite.core import ConfigError, as_integer


def hermite_functions(
    count: int, points: np.ndarray, *, tilt: float = 0.0
) -> np.ndarray:
    r"""Return the first functions, times $e^{-cs^2}$, at points: (count, *shape)."""
    phi = np.empty((count, *points.shape))
    phi[0] = np.exp(-(0.25 + tilt) * points**2) / (2 * np.pi) ** 0.25
    if count > 1:
        phi[1] = points * phi[0]
    for j in range(1, count - 1):
        below = np.sqrt(j) * phi[j - 1]
        phi[j + 1] = (points * phi[j] - below) / np.sqrt(j + 1)
    return phi


def full_integrals(count: int) -> np.ndarray:
    r"""Return $\int \varphi_j$ over the line: zero for odd j, by a recursion for even.

    From $2\varphi_j' = \sqrt{j}\varphi_{j-1} - \sqrt{j+1}\varphi_{j+1}$, whose integral
    is zero.
    """
    integrals = np.zeros(count)
    integrals[0] = 2 * np.sqrt(np.pi) / (2 * np.pi) ** 0.25
    for j in range(1, count - 1, 2):
        integrals[j + 1] = integrals[j - 1] * np.sqrt(j / (j + 1))
    return integrals


class Panels:
    """Equal panels of Gauss–Legendre nodes, with integrals up to every node.

    Attributes:
        nodes: Shape (panels, per).
        weights: Quadrature weights of the nodes.
        to_node: Weights of the integral from a panel's start to each of its nodes.
    """

    def __init__(self, low: float, high: float, panels: int, per: int) -> None:
        x, w = legendre.leggauss(per)
        edges = np.linspace(low, high, panels + 1)
        half = (edges[1] - edges[0]) / 2
        self.nodes = edges[:-1, None] + half * (1 + x)
        self.weights = np.broadcast_to(half * w, self.nodes.shape)
        powers = np.eye(per)
        upto = [legendre.legval(x, legendre.legint(row, lbnd=-1)) for row in powers]
        self.to_node = (
            half * np.array(upto).T @ np.linalg.inv(legendre.legvander(x, per - 1))
        )

    def running(self, values: np.ndarray) -> np.ndarray:
        """Return the integral up to every node, of values (..., panels, per)."""
        whole = (values * self.weights).sum(-1)
        before = np.cumsum(whole, -1) - whole
        return before[..., None] + values @ self.to_node.T


# Largest index that the derivatives below cover.
DEEPEST_INDEX = 2
_PER = 16
# Nodes per panel, and panel widths in units of the edge; two digits more than needed.
_WIDTH = 2.0


def eigenvalue_density(
    size: int, *, tilt: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return the mean density of all eigenvalues times $e^{-cs^2}$ at weighted nodes.

    The density is $\sum_{j<n}\varphi_j^2 +
    \frac{\sqrt n}{2}\varphi_{n-1}\,\epsilon\varphi_n$, and for odd n
    $\varphi_{n-1}/\int\varphi_{n-1}$ besides, where $\epsilon\varphi(s)$ is half
    of the integral below s minus that above.

    Assumes: Gaussian orthogonal ensemble, off-diagonal variance 1.

    Args:
        size: Of the matrix, $n$.
        tilt: c, above −1/4, where the tail of the density would no longer fall.

    Returns:
        Nodes, weights and densities; without a tilt they integrate to $n$.

    References:
        Mehta (2004), Random Matrices, 3rd ed., section 7.2.

    Example:
        >>> nodes, weights, density = eigenvalue_density(5)
        >>> round(float(weights @ density), 12)
        5.0
    """
    n = as_integer("size", size, 1)
    reach = max(2 * np.sqrt(n) + 12, np.sqrt(36 / (0.25 + tilt)))
    grid = Panels(-reach, reach, max(8, int(reach * np.sqrt(n) / np.pi)), _PER)
    phi = hermite_functions(n + 1, grid.nodes)
    # A factor that may grow goes into the recursion, where it cannot overflow.
    tilted = hermite_functions(n, grid.nodes, tilt=tilt)
    below = grid.running(phi[n]) - full_integrals(n + 1)[n] / 2
    density = (phi[:n] * tilted).sum(0) + np.sqrt(n) / 2 * tilted[n - 1] * below
    if n % 2:
        density += tilted[n - 1] / full_integrals(n)[n - 1]
    return grid.nodes.ravel(), grid.weights.ravel(), density.ravel()


def edge_mean(
    size: int,
    index: int,
    slope: Callable[[np.ndarray], np.ndarray],
    value: Callable[[float], float],
) -> float:
    r"""Mean of a function of the (index + 1)-th smallest eigenvalue, by quadrature.

    $E\,g(\lambda) = g(s_0) + \int_{s_0} g'(s)\,P(\lambda > s)\,ds$ from far below the
    spectrum, where the probability that at most k eigenvalues lie below s comes from
    Pfaffians: $\sum_k z^k P_k(s) = Pf(H + zM + z^2L) / Pf(H + M + L)$, integrals of
    Hermite functions above s, across it and below it.

    Assumes: Gaussian orthogonal ensemble, off-diagonal variance 1; g bounded, and
    small where the probability is below rounding.

    Args:
        size: Of the matrix.
        index: k, from 0 to 2.
        slope: $g'$ at an array of points.
        value: $g$ at a point.
    """
    if not 0 <= index <= DEEPEST_INDEX or index >= size:
        raise ConfigError(
            f"index {index} of {size} eigenvalues: pass one from 0 to {DEEPEST_INDEX} "
            "below the size, or sample"
        )
    nodes, weights, shares = _edge(size)
    parts = weights * slope(nodes) * shares[:, : index + 1].sum(1)
    return float(parts.sum()) + value(_edge_start(size))


def _edge_start(size: int) -> float:
    """Return a point below which no eigenvalue lies, up to rounding."""
    return -2 * np.sqrt(size) - 13 * size ** (-1 / 6)


@lru_cache(maxsize=8)
def _edge(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return nodes, weights and probabilities of 0, 1 and 2 eigenvalues below."""
    nodes, weights, shares = zip(*_edge_panels(size), strict=True)
    return np.concatenate(nodes), np.concatenate(weights), np.concatenate(shares)


def _edge_panels(n: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the same panel by panel, until the probabilities are below rounding."""
    unit = n ** (-1 / 6)  # in which the smallest eigenvalue fluctuates
    low = _edge_start(n)
    high = min(-low, -2 * np.sqrt(n) + 24 * unit)
    grid = Panels(low, high, int(np.ceil((high - low) / (_WIDTH * unit))), _PER)
    phi = hermite_functions(n, grid.nodes)
    running = grid.running(phi)
    ends = full_integrals(n)
    whole = _bordered(_full_products(n), ends)
    norm = np.linalg.slogdet(whole)[1] / 2
    below = np.zeros((n, n))
    for panel in range(len(grid.nodes)):
        f, u = phi[:, panel], running[:, panel]
        rates = u.T[:, :, None] * f.T[:, None, :]
        rates = rates - rates.transpose(0, 2, 1)
        inner = np.tensordot(grid.to_node, rates, axes=1)
        shares = [
            _shares(whole, below + inner[i], u[:, i], ends, norm) for i in range(_PER)
        ]
        below = below + np.tensordot(grid.weights[panel], rates, axes=1)
        yield grid.nodes[panel], grid.weights[panel], np.array(shares)
        if shares[-1][:3].sum() < 1e-14:
            return


def _shares(
    whole: np.ndarray, below: np.ndarray, u: np.ndarray, ends: np.ndarray, norm: float
) -> np.ndarray:
    """Return the probabilities of 0, 1 and 2 eigenvalues below a point."""
    v = ends - u
    across = np.outer(u, v)
    m = _bordered(across - across.T, u)
    both = _bordered(below, np.zeros_like(u))
    factors = lu_factor(whole - m - both, check_finite=False)
    half = np.log(np.abs(np.diag(factors[0]))).sum() / 2
    none = float(np.exp(half - norm))
    solved = lu_solve(factors, np.hstack([m, both]), check_finite=False)
    hm, hl = solved[:, : len(m)], solved[:, len(m) :]
    once = np.trace(hm) / 2
    twice = once**2 + np.trace(hl) - np.sum(hm * hm.T) / 2
    return none * np.array([1.0, once, twice / 2])


def _full_products(n: int) -> np.ndarray:
    r"""Return $\iint sgn(y - x)\,\varphi_i(x)\varphi_j(y)$ over the plane."""
    reach = 2 * np.sqrt(n) + 12
    grid = Panels(-reach, reach, max(8, int(reach * np.sqrt(n) / np.pi)), _PER)
    phi = hermite_functions(n, grid.nodes)
    left = grid.running(phi) - full_integrals(n)[:, None, None] / 2
    product = (left * grid.weights).reshape(n, -1) @ phi.reshape(n, -1).T
    return product - product.T


def _bordered(matrix: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return the matrix itself, or for odd size with one more row and column."""
    n = len(matrix)
    if n % 2 == 0:
        return matrix
    bordered = np.zeros((n + 1, n + 1))
    bordered[:n, :n] = matrix
    bordered[:n, n], bordered[n, :n] = column, -column
    return bordered

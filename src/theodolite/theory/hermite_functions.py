r"""Hermite functions, and integrals from the left over panels of Gauss nodes.

$\varphi_j(s) = He_j(s)\,e^{-s^2/4} / \sqrt{j!\sqrt{2\pi}}$ are orthonormal on the line;
they carry all correlations of the eigenvalues of the Gaussian orthogonal ensemble with
off-diagonal entries of variance 1.
"""

import numpy as np
from numpy.polynomial import legendre


def hermite_functions(
    count: int, points: np.ndarray, *, tilt: float = 0.0
) -> np.ndarray:
    r"""Return the first functions, times $e^{-cs^2}$, at points: (count, *shape)."""
    found = np.empty((count, *points.shape))
    found[0] = np.exp(-(0.25 + tilt) * points**2) / (2 * np.pi) ** 0.25
    if count > 1:
        found[1] = points * found[0]
    for j in range(1, count - 1):
        below = np.sqrt(j) * found[j - 1]
        found[j + 1] = (points * found[j] - below) / np.sqrt(j + 1)
    return found


def whole_integrals(count: int) -> np.ndarray:
    r"""Return $\int \varphi_j$ over the line: zero for odd j, by a recursion for even.

    From $2\varphi_j' = \sqrt{j}\varphi_{j-1} - \sqrt{j+1}\varphi_{j+1}$, whose integral
    is zero.
    """
    found = np.zeros(count)
    found[0] = 2 * np.sqrt(np.pi) / (2 * np.pi) ** 0.25
    for j in range(1, count - 1, 2):
        found[j + 1] = found[j - 1] * np.sqrt(j / (j + 1))
    return found


class Panels:
    """Equal panels of Gauss–Legendre nodes, with integrals up to every node.

    Attributes:
        nodes: Shape (panels, per).
        weights: Of the nodes.
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

    def integral(self, values: np.ndarray) -> np.ndarray:
        """Return the integral over all panels."""
        return (values * self.weights).sum((-2, -1))

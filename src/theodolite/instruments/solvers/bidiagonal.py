r"""Distribution of singular values by stochastic quadrature, with a bound.

A random start on the sphere has a spectral measure $\mu$ whose distribution function
is a weighted count of singular values. Golub-Kahan bidiagonalisation gives its Gauss
rule, nodes $\theta_i$ with weights $\tau_i$; two facts turn that into a bound.

Truncation: by the inequalities of Chebyshev, Markov and Stieltjes $\sum_{j<i}\tau_j \le
\mu[0, \theta_i) \le \mu[0, \theta_i] \le \sum_{j\le i}\tau_j$. Where a Ritz vector
has residual $\rho_i$, at least $(\sqrt{\tau_i} - \rho_i/\delta)^2$ of the mass lies
within $\delta \le \theta_i$ of $\theta_i$, which pins atoms down.

Chance: the weights of a uniform start on singular vectors are Dirichlet with all
parameters 1/2 whatever the matrix. The distribution function thus deviates from the
true one as a Brownian bridge of variance $2/(n+2)$ does, and $P$ starts divide it by
$P$: quantiles of its supremum are Kolmogorov's.

References:
    Golub and Meurant (2010), Matrices, Moments and Quadrature, §§2, 4.
    Ubaru, Chen and Saad (2017), Fast estimation of tr(f(A)) via SLQ.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..operators.operator import Operator
from ..operators.vectors import Basis, norm
from .lanczos import ON_DEVICE, Storage

# A look at the bound costs an SVD of the small matrix: the first after so many steps,
# every next after a quarter more.
_FIRST, _GROWTH = 16, 1.25


@dataclass(frozen=True)
class GaussRule:
    """Nodes, ascending, with weights and residuals of their Ritz vectors.

    Attributes:
        nodes: Estimated singular values.
        weights: Mass of each; they sum to 1.
        residuals: Distance within which a true singular value lies.
        exhausted: Whether the rule is the whole measure, not its truncation.
    """

    nodes: np.ndarray
    weights: np.ndarray
    residuals: np.ndarray
    exhausted: bool

    def envelope(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bound the measure's distribution function at some points."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights)])
        count = len(self.nodes)
        below = np.searchsorted(self.nodes, points, side="right")
        if self.exhausted:
            return sums[below], sums[below]
        low = sums[np.maximum(below - 1, 0)]
        high = np.where(below < count, sums[np.minimum(below + 1, count)], 1.0)
        # The node below a point pins mass between its predecessor and the point, the
        # node above one between the point and its successor.
        gaps = np.concatenate([[np.inf], np.diff(self.nodes), [np.inf]])
        last, after = np.maximum(below - 1, 0), np.minimum(below, count - 1)
        reach = np.minimum(points - self.nodes[last], gaps[last])
        held = np.where(below > 0, self._pinned(last, reach), 0.0)
        low = np.maximum(low, sums[np.maximum(below - 2, 0)] + held)
        reach = np.minimum(self.nodes[after] - points, gaps[after + 1])
        held = np.where(below < count, self._pinned(after, reach), 0.0)
        high = np.minimum(high, sums[np.minimum(below + 2, count)] - held)
        return low, np.clip(high, low, 1.0)

    def _pinned(self, index: np.ndarray, distance: np.ndarray) -> np.ndarray:
        r"""Return the least mass within a distance $\delta$ of some nodes.

        A Ritz vector of $J^\top J$ has residual $\theta\rho$, so that all but
        $(\theta\rho/\Delta)^2$ of it lies where $|\sigma^2 - \theta^2| < \Delta$, which
        is within $\delta$ for $\Delta = \delta(2\theta - \delta)$, or $\delta(2\theta +
        \delta)$ where $\delta > \theta$.
        """
        node, far = self.nodes[index], np.maximum(distance, 0.0)
        reach = far * np.where(far > node, 2 * node + far, 2 * node - far)
        lost = np.divide(
            node * self.residuals[index],
            reach,
            out=np.full(len(node), np.inf),
            where=reach > 0,
        )
        return np.maximum(np.sqrt(self.weights[index]) - lost, 0.0) ** 2


class Bidiagonalisation:
    """Golub-Kahan steps with full re-orthogonalisation of both bases."""

    def __init__(
        self,
        operator: Operator,
        start: Tensor,
        capacity: int,
        storage: Storage = ON_DEVICE,
    ) -> None:
        self._operator = operator
        self._right = storage.basis(capacity, operator.shape[1], start)
        self._left = storage.basis(capacity, operator.shape[0], start)
        self._diagonal: list[float] = []
        self._above: list[float] = []
        self.exhausted, self.finite = False, True
        self._pending = start / norm(start)

    @property
    def size(self) -> int:
        """Number of steps taken."""
        return len(self._diagonal)

    @property
    def full(self) -> bool:
        """Whether no further step is possible or needed."""
        return self.exhausted or not self.finite or self.size == self._right.capacity

    def step(self) -> None:
        """Take one step: a product and one with the transpose."""
        k = self.size
        self._right.store(k, self._pending)
        image = self._left.agreed(self._operator.product(self._pending).clone())
        self.finite = bool(torch.isfinite(image).all())
        if not self.finite:
            return
        if k:
            image -= self._above[-1] * self._left.row(k - 1)
        _project_out(image, self._left, k)
        alpha = self._normalised(image)
        self._diagonal.append(alpha)
        self._left.store(k, image)
        if alpha == 0:
            self._above.append(0.0)
            self.exhausted = True
            return
        back = self._right.agreed(self._operator.transposed_product(image).clone())
        back -= alpha * self._right.row(k)
        _project_out(back, self._right, k + 1)
        beta = self._normalised(back)
        self._above.append(beta)
        self.exhausted = beta == 0
        self._pending = back

    def _normalised(self, vector: Tensor) -> float:
        """Divide by the norm, or return 0 where only rounding is left."""
        size = norm(vector)
        scale = max([*self._diagonal, *self._above], default=size)
        eps = torch.finfo(vector.dtype).eps
        if size <= 10 * eps * scale or size == 0:
            vector.zero_()
            return 0.0
        vector /= size
        return size

    def rule(self) -> GaussRule:
        """Return the Gauss rule of the steps so far."""
        matrix = np.diag(self._diagonal) + np.diag(self._above[:-1], 1)
        # By torch, which keeps to the threads that its user allows.
        parts = torch.linalg.svd(torch.from_numpy(matrix))
        left, values, right = (part.numpy() for part in parts)
        residuals = self._above[-1] * np.abs(left[-1])
        return GaussRule(
            values[::-1].copy(),
            right[::-1, 0] ** 2,
            residuals[::-1].copy(),
            self.exhausted,
        )


def gauss_rule(
    operator: Operator,
    start: Tensor,
    *,
    steps: int,
    tol: float,
    cells: int,
    storage: Storage = ON_DEVICE,
) -> tuple[GaussRule | None, bool]:
    """Take steps until the truncation bound falls below ``tol``.

    Returns:
        The rule, None if a product was not finite; and whether it got there.
    """
    process = Bidiagonalisation(operator, start, steps, storage)
    with operator.together():
        return _taken(process, tol=tol, cells=cells)


def _taken(
    process: Bidiagonalisation, *, tol: float, cells: int
) -> tuple[GaussRule | None, bool]:
    look = _FIRST
    while True:
        process.step()
        if not process.finite:
            return None, False
        if process.full or process.size >= look:
            look = int(np.ceil(_GROWTH * process.size))
            rule = process.rule()
            low, high = rule.envelope(grid(float(rule.nodes[-1]), cells))
            done = float((high - low).max()) / 2 <= tol
            if done or process.full:
                return rule, done


def grid(top: float, cells: int) -> np.ndarray:
    """Return the midpoints of equal cells from 0 to ``top``."""
    return (np.arange(cells) + 0.5) * (top / cells)


def chance(size: int, probes: int, level: float) -> float:
    """Return the sampling error of random starts, at a confidence level."""
    from scipy.stats import kstwobign

    return float(kstwobign.ppf(level) * np.sqrt(2 / ((size + 2) * probes)))


def _project_out(vector: Tensor, rows: Basis, count: int) -> None:
    """Take the rows' components out; again where much was lost to cancellation."""
    for _ in range(2):
        before = norm(vector)
        rows.remove(vector, count)
        # Parlett's criterion; the recurrence leaves little to take out, so that one
        # pass is enough as a rule.
        if norm(vector) > 0.7 * before:
            return

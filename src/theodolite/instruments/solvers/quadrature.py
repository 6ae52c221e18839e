r"""Stochastic Lanczos quadrature with intervals that hold for every spectrum.

For a normal vector $g$ the measure $\mu_g(x) = g^\top 1(H \le x)\,g$ has $n F(x)$ in
the mean, $F$ being the distribution function of the eigenvalues. Lanczos from $g$
gives its Gauss rule, nodes $\theta_i$ with weights $w_i$ and residuals $r_i$. Two
errors are kept apart and added.

Chance: for $P$ vectors the share $\sum_p \mu_{g_p}(x) / \sum_p \|g_p\|^2$ is exactly
Beta distributed with parameters $PnF/2$ and $Pn(1-F)/2$, so that an interval follows
by inversion, as Clopper and Pearson's does for a binomial. A smooth $f \ge 0$ in place
of the step is matched to it in its first two moments (Satterthwaite).

Truncation: the share of one vector lies between the sums of weights one node to the
left and one to the right (Chebyshev, Markov, Stieltjes). Also, Ritz vectors $y_i$ obey
$(H - \theta_i) y_i = b_i v$ with one unit vector $v$, so what those on one side of $x$
have on the other side, taken together with their coordinates $s_i$, has norm at most
$\max_\lambda |\sum_i s_i b_i / (\lambda - \theta_i)|$ over that side (looked up on a
grid). By so much the root of the share may be off, which settles it next to nodes that
have converged, such as a heavy one at zero. The smaller of the two bounds is taken.

References:
    Golub and Meurant (2010), Matrices, Moments and Quadrature, §§2 and 4.
    Chen, Trogdon and Ubaru (2021), Analysis of stochastic Lanczos quadrature for
    spectrum approximation, ICML.
    Satterthwaite (1946), An approximate distribution of estimates of variance.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from theodolite.core import Status, stream

from ..operators.operator import Operator, strides
from ..operators.vectors import normal_vector, squared_norm
from ..passes.forecast import refuse_beyond
from .lanczos import ON_DEVICE, Krylov, Placement, Storage, grow, storage_for

# Points at which the truncation is looked at beyond an edge, evenly on a logarithmic
# axis from a quarter of the distance to the nearest node.
_OFFSETS = 16
# Terms of the bound that are computed at once: half a MiB.
_ENTRIES = 2**16
# Largest bytes of the bases of several vectors that are kept at a time.
_SIDE_BY_SIDE = 2**28


@dataclass(frozen=True)
class Band:
    """An estimate at each point, and the interval of the stated confidence."""

    centre: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def half_width(self) -> np.ndarray:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Quadrature:
    r"""Gauss rules of some vectors; where a rule is short it ends in weights of 0.

    Attributes:
        nodes: One rule per row, ascending.
        weights: They sum to 1 in every row.
        couplings: $s_i b_i$; 0 where a rule is exact.
        coarse_nodes: The same from three quarters of the steps, to see what the last
            quarter changed.
        coarse_weights: Their weights.
        squares: Squared norms of the vectors.
        size: Order of the operator.
        scale: Largest node in magnitude.
        noise: Estimated error of a product.
        status: SAMPLED, or NONFINITE where a product was not finite.
        storage: Where the vectors of a rule were kept.
    """

    nodes: np.ndarray
    weights: np.ndarray
    couplings: np.ndarray
    coarse_nodes: np.ndarray
    coarse_weights: np.ndarray
    squares: np.ndarray
    size: int
    scale: float
    noise: float
    status: Status
    storage: Storage = ON_DEVICE

    def status_at(self, precision: float, tol: float | None) -> Status:
        """Return the status of an estimate, with or without ``tol``."""
        sampled = self.status is Status.SAMPLED
        return Status.of_sample(precision, tol) if sampled else self.status

    @property
    def pooled(self) -> tuple[np.ndarray, np.ndarray]:
        """All nodes as one rule, and their weights, which sum to 1."""
        shares = self.squares / self.squares.sum()
        return self.nodes.reshape(-1), (self.weights * shares[:, None]).reshape(-1)

    def share(self, low: np.ndarray, high: np.ndarray, *, level: float) -> Band:
        """Estimate the fraction of eigenvalues in closed intervals."""
        low, high = np.broadcast_arrays(np.atleast_1d(low), np.atleast_1d(high))
        each = [self._one_share(p, low, high) for p in range(len(self.nodes))]
        centre, least, most = (
            np.average([rule[i] for rule in each], axis=0, weights=self.squares)
            for i in range(3)
        )
        low, high = self._chance(least, most, level)
        return Band(centre, np.minimum(centre, low), np.maximum(centre, high))

    def smooth(
        self, function: Callable[[np.ndarray], np.ndarray], *, level: float
    ) -> Band:
        r"""Estimate $\operatorname{tr} f(H)/n$ for $f \ge 0$ at each of some points.

        ``function`` maps an array to one with a leading axis more, the points.
        """
        values = function(self.nodes)
        means = (values * self.weights).sum(-1)
        centre = np.average(means, axis=1, weights=self.squares)
        second = np.average(
            (values**2 * self.weights).sum(-1), axis=1, weights=self.squares
        )
        coarse = (function(self.coarse_nodes) * self.coarse_weights).sum(-1)
        moved = np.abs(centre - np.average(coarse, axis=1, weights=self.squares))
        # f ≈ c times a projector of rank ν, with c = tr f² / tr f.
        with np.errstate(divide="ignore", invalid="ignore"):
            c = np.where(centre > 0, second / centre, 1.0)
        c = np.maximum(c, np.finfo(np.float64).tiny)
        share = np.minimum(centre / c, 1.0)
        low, high = self._chance(share, share, level)
        return Band(centre, np.maximum(c * low - moved, 0.0), c * high + moved)

    def _chance(self, least: np.ndarray, most: np.ndarray, level: float) -> np.ndarray:
        """Return the lower bounds of shares and the upper ones of others."""
        return beta_bound(
            np.stack([least, most]),
            len(self.nodes) * self.size,
            (1 - level) / 2,
            upper=np.array([[False], [True]]),
        )

    def _one_share(
        self, p: int, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        nodes, weights, couplings = self.nodes[p], self.weights[p], self.couplings[p]
        inside = (nodes >= low[:, None]) & (nodes <= high[:, None])
        centre = inside @ weights
        if not couplings.any():
            return centre, centre, centre
        up_to = _markov(weights, np.searchsorted(nodes, high, side="right"))
        before = _markov(weights, np.searchsorted(nodes, low, side="left"))
        up_to = np.where(np.isposinf(high), 1.0, up_to)
        before = np.where(np.isneginf(low), 0.0, before)
        least, most = up_to[0] - before[1], up_to[1] - before[0]
        leak = _leak(nodes, couplings, inside, low, high)
        root = np.sqrt(centre)
        least = np.maximum(least, np.maximum(root - leak, 0.0) ** 2)
        most = np.minimum(most, (root + leak) ** 2)
        return centre, np.clip(least, 0, centre), np.clip(most, centre, 1)


def quadrature_of(
    operator: Operator,
    *,
    n_probes: int,
    steps: int,
    seed: int,
    basis_bytes: int = 4 * 2**30,
    basis: Placement = "auto",
) -> Quadrature:
    """Run Lanczos from some normal vectors; stops early where a product fails.

    Of small operators several go side by side, as far as ``basis_bytes`` holds them.
    """
    steps = min(steps, operator.shape[1])
    room = _room(operator, steps, basis_bytes)
    storage = storage_for(operator, basis, vectors=steps + 1)
    table = np.zeros((5, n_probes, steps))
    squares, scale, noise = np.zeros(n_probes), 0.0, 0.0
    status, done = Status.SAMPLED, 0
    for places in strides(n_probes, operator, at_most=room):
        vectors = [
            normal_vector(operator, stream(seed, "quadrature", p)) for p in places
        ]
        squares[places] = [squared_norm(vector) for vector in vectors]
        spaces = [
            Krylov(operator, vector, capacity=steps, storage=storage)
            for vector in vectors
        ]
        grow(spaces, operator)
        for p, krylov in zip(places, spaces, strict=True):
            if not krylov.finite:
                status = Status.NONFINITE
                break
            _fill(krylov, table[:, p])
            scale = max(scale, float(np.abs(table[0, p]).max(initial=0.0)))
            noise, done = max(noise, krylov.noise), p + 1
        if status is Status.NONFINITE:
            break
    nodes, weights, couplings, coarse_nodes, coarse_weights = table[:, :done]
    return Quadrature(
        nodes,
        weights,
        couplings,
        coarse_nodes,
        coarse_weights,
        squares[:done],
        operator.shape[1],
        scale,
        noise,
        status,
        storage,
    )


def _room(operator: Operator, steps: int, basis_bytes: int) -> int:
    """Return how many bases fit in memory; refuse if not even one does."""
    vector = operator.shape[1] * operator.torch_dtype.itemsize
    fewer = basis_bytes // vector - 1
    refuse_beyond(
        (steps + 1) * vector,
        basis_bytes,
        f"the basis of {steps} steps over {operator.shape[1]:,} parameters",
        (f"pass steps={fewer}, or " if fewer >= 2 else "") + "raise basis_bytes",
    )
    return min(basis_bytes, _SIDE_BY_SIDE) // ((steps + 1) * vector)


def _fill(krylov: Krylov, row: np.ndarray) -> None:
    whole, m = krylov.ritz(), krylov.size
    part = whole if krylov.invariant else krylov.ritz(max(1, 3 * m // 4))
    for place, ritz in ((0, whole), (3, part)):
        count = len(ritz.values)
        row[place, :count] = ritz.values
        row[place, count:] = ritz.values[-1]
        row[place + 1, :count] = ritz.vectors[0] ** 2
    if not krylov.invariant:
        row[2, :m] = whole.couplings * whole.vectors[0]


def _markov(weights: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bound a distribution function where ``below`` nodes lie to the left."""
    sums = np.concatenate([[0.0, 0.0], np.cumsum(weights), [1.0]])
    return sums[below], sums[below + 2]


def _leak(
    nodes: np.ndarray,
    couplings: np.ndarray,
    inside: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """Bound the mass of Ritz vectors on the wrong side of interval ends."""
    reach = float(np.ptp(nodes)) + float(np.abs(nodes).max())
    total = np.zeros(len(low))
    for own in (True, False):  # nodes inside leak out, nodes outside leak in
        weights = np.where(inside == own, couplings, 0.0)
        worst = np.zeros(len(low))
        for edge, out in ((low, -1.0), (high, 1.0)):
            finite = np.isfinite(edge)
            if not finite.any():
                continue
            at = np.where(finite, edge, 0.0)
            near = np.abs(nodes - at[:, None]).min(axis=1)
            first = np.maximum(near / 4, 1e-18 * reach + 1e-300)
            # λ from the edge outwards for nodes inside, inwards for those outside.
            offsets = np.geomspace(first, 2 * reach + first, _OFFSETS)
            offsets = np.concatenate([np.zeros((1, len(low))), offsets])
            points = at + (out if own else -out) * offsets
            if not own:
                points = np.clip(points, low, high)
            value = _greatest(points, nodes, weights)
            worst = np.maximum(worst, np.where(finite, value, 0.0))
        total += worst**2
    return np.sqrt(total)


def _greatest(points: np.ndarray, nodes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the greatest size, over rows of points, of sums of weights over gaps."""
    worst = np.zeros(points.shape[1])
    rows = max(1, _ENTRIES // weights.size)
    for start in range(0, len(points), rows):
        gaps = points[start : start + rows, :, None] - nodes
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(weights == 0, 0.0, weights / gaps)
        worst = np.maximum(worst, np.abs(terms.sum(axis=2)).max(axis=0))
    return worst


def beta_bound(
    share: np.ndarray, count: int, tail: float, *, upper: bool | np.ndarray
) -> np.ndarray:
    r"""Return the fraction at which a share so extreme has probability ``tail``.

    Solves $P(X \ge \text{share}) = \text{tail}$ (lower bound) or $P(X \le
    \text{share}) = \text{tail}$ (upper bound) for $F$, with $X$ Beta distributed with
    parameters $NF/2$ and $N(1-F)/2$, by bisection.

    Args:
        share: Observed shares in [0, 1].
        count: $N$, vectors times order.
        tail: Probability beyond the bound.
        upper: Which bound, of all of them or of each.

    Example:
        >>> beta_bound(np.array([0.5]), 100, 0.025, upper=True).round(3)
        array([0.637])
    """
    from scipy.special import betainc

    # Weights sum to 1 up to rounding, and at 0 and 1 the bounds jump.
    share = np.where(share < 1e-12, 0.0, np.where(share > 1 - 1e-12, 1.0, share))
    low, high = np.zeros_like(share), np.ones_like(share)
    target = np.where(upper, tail, 1 - tail)
    for _ in range(42):  # to 1e-12
        middle = (low + high) / 2
        below = betainc(count * middle / 2, count * (1 - middle) / 2, share)
        # P(X ≤ share) falls as F rises.
        rising = below > target
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    solution = (low + high) / 2
    edge = np.where(upper, share >= 1.0, share <= 0.0)
    return np.where(edge, share, solution)

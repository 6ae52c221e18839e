r"""Extreme eigenpairs, with a bound on eigenvalues that were not detected.

A warm start finds its pairs in a few products, but does not see a direction that took
the lead meanwhile. A cold one that stops once residual² over the gap is small may take
a cluster for one eigenvalue, and miss a leader above it. So the pairs $Y$ are
multiplied once more, $HY = Y\Theta + R$, and a second search runs in their complement,
from their residual plus a new random direction, until every eigenvalue that it may have
missed is too small to matter. With $U$ the bound on the complement's eigenvalues and
$\rho = \|R\|$, those of $H$ lie above the Ritz values by at most
$2\rho^2/(\eta + \sqrt{\eta^2 + 4\rho^2})$ where $\eta = \theta_i - U \ge 0$, and by
$U - \theta_i + \rho$ otherwise; never below them. Where the complement shows a value
that belongs among the wanted, the pairs are computed again from both, and the
complement is searched again.

The bound $U$: a start that is uniform on the sphere of $\mathbb R^N$ has a share
$w = (u \cdot g)^2$ in any one eigenvector $u$, Beta distributed with parameters $1/2$
and $(N-1)/2$: below its quantile $q$ with probability $\delta$ only, for every matrix.
The start's spectral measure then has an atom of $q$ or more at that eigenvalue
$\lambda$; and an atom is at most the Christoffel number,
$1/\sum_{j \le m} p_j(\lambda)^2$ with $p_j$ the orthonormal polynomials of the measure,
which the recurrence of Lanczos gives. Where that number is below $q$ there is no
eigenvalue, except with probability $\delta$. Beyond the outermost Ritz values the sum
grows, so that one point bounds all that lies outside. A start $r + g$ with any fixed
$r$ works as well: the density of $u \cdot g$ is symmetric and has one peak (for
$N \ge 3$), so that a shift makes no interval around 0 more likely.

References:
    Li and Li (2005), A note on eigenvalues of perturbed Hermitian matrices, Linear
    Algebra Appl. 395 (the quadratic bound).
    van Dorsselaer, Hochstenbach and van der Vorst (2000), Computing probabilistic
    bounds for extreme eigenvalues of symmetric matrices with the Lanczos method, SIAM
    J. Matrix Anal. 22; they take the last polynomial in place of the sum.
    Golub and Meurant (2010), Matrices, Moments and Quadrature, §2 (Christoffel
    numbers).
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from theodolite.core import Status, stream

from ..operators.operator import Operator
from ..operators.vectors import norm, normal_vector, squared_norm, take_out
from .eigenpairs import (
    Ends,
    Pairs,
    Search,
    capacity_of,
    gaps_of,
    searched,
    sharpened,
    wanted,
)
from .lanczos import Krylov


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


def undetected_bound(
    diagonal: np.ndarray, below: np.ndarray, top: float, share: float
) -> float:
    """Return an upper bound of eigenvalues that Lanczos may have missed.

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


# The pairs are sought so much more closely than they are wanted that an error below
# the tolerance is a question of what was missed alone, also where the next value lies
# a hundredth away: a warm start does not see the gap.
_CLOSER, _GAP, _RESIDUAL = 0.1, 0.01, 0.5


@dataclass
class _Locked:
    """Pairs that were multiplied: vectors and residuals as rows, norm of the latter."""

    vectors: Tensor
    values: np.ndarray
    rest: Tensor
    norm: float


def certified_pairs(
    operator: Operator, search: Search, *, start: Tensor | None, chance: float
) -> Pairs:
    """Return the wanted eigenpairs with bounds on what was missed, in ``sharp``."""
    count = min(2 * search.k if search.ends == "both" else search.k, operator.shape[1])
    cap = float(np.sqrt(_GAP * search.tol))
    if start is None:
        # Residuals below the tolerance certify a value also where a near copy of it is
        # left in the complement, and the second search ends the sooner.
        cap = min(cap, _RESIDUAL * search.tol / float(np.sqrt(count)))
    search = replace(search, cap=cap)
    closer = _CLOSER * search.tol if search.stop == "value" else search.tol
    # The search keeps one product for a check, which is that of the pairs here.
    spare = max(2, search.max_matvecs - count + 1)
    pairs = searched(
        operator, replace(search, tol=closer, max_matvecs=spare), start=start
    )
    pairs.sharp = np.full(len(pairs.values), np.inf)
    sweep = 0
    while len(pairs.values) and pairs.end is not Status.NONFINITE:
        locked = _lock(operator, pairs)
        if pairs.end is not Status.CONVERGED or locked is None:
            break
        generator = stream(search.seed, "missed", sweep)
        if _exclude(operator, search, pairs, locked, chance, generator):
            break
        sweep += 1
    return pairs


def _lock(operator: Operator, pairs: Pairs) -> _Locked | None:
    """Multiply the pairs, and make them Ritz pairs with residuals that were seen."""
    rows = torch.linalg.qr(pairs.vectors.double().T).Q.T.to(pairs.vectors)
    products = torch.stack([operator.product(row).detach() for row in rows])
    pairs.spent += len(rows)
    if not bool(torch.isfinite(products).all()):
        pairs.end = Status.NONFINITE
        return None
    block = (rows.double() @ products.double().T).cpu().numpy()
    pairs.noise = max(pairs.noise, float(np.linalg.norm(block - block.T)) / 2)
    values, turn = np.linalg.eigh((block + block.T) / 2)
    weights = torch.from_numpy(turn.T.copy()).to(rows)
    vectors, products = weights @ rows, weights @ products
    rest = products - torch.from_numpy(values).to(rows)[:, None] * vectors
    gram = (rest.double() @ rest.double().T).cpu().numpy()
    pairs.vectors, pairs.values = vectors, values
    pairs.bounds = np.sqrt(np.diagonal(gram))
    pairs.gaps = gaps_of(values, pairs.bounds)
    pairs.sharp = np.full(len(values), np.inf)
    return _Locked(vectors, values, rest, float(np.sqrt(np.linalg.norm(gram, 2))))


def _exclude(
    operator: Operator,
    search: Search,
    pairs: Pairs,
    locked: _Locked,
    chance: float,
    generator: np.random.Generator,
) -> bool:
    """Search the complement until nothing in it matters; False to search again."""
    room = operator.shape[1] - len(locked.values)
    if room < 1:
        pairs.sharp = np.full(len(locked.values), locked.norm)
        return True
    first, share = _start(operator, locked, generator)
    share *= least_share(room, chance)
    krylov = Krylov(
        operator,
        first,
        capacity=capacity_of(operator, search, len(locked.values)),
        locked=locked.vectors,
        scale=pairs.scale,
        storage=search.storage,
    )
    sides = _sides(locked.values, search)
    floor = pairs.floor(torch.finfo(operator.torch_dtype).eps)
    needed = [_needed(side, locked.norm, search.tol, floor) for side in sides]
    while _stepped(search, pairs, krylov):
        shown = krylov.ritz().values
        tops = [float((side.sign * shown).max()) for side in sides]
        if any(top > point for top, point in zip(tops, needed, strict=True)):
            # However little was missed, the pairs will not do.
            if _refound(search, pairs, locked, krylov, floor):
                return False
        elif krylov.invariant or all(
            excluded(*_turned(krylov, side.sign), point, share)
            for side, point in zip(sides, needed, strict=True)
        ):
            break
    if krylov.size:
        _conclude(pairs, locked, krylov, sides, share)
    return True


@dataclass(frozen=True)
class _Side:
    """One end of the spectrum: its sign, the places of its pairs, and how high."""

    sign: int
    places: np.ndarray
    heights: np.ndarray


def _sides(values: np.ndarray, search: Search) -> list[_Side]:
    by_end = wanted(values, search.k, search.ends)
    if search.ends == "magnitude":
        sizes = np.abs(values[by_end[0]])
        return [_Side(sign, by_end[0], sizes) for sign in (1, -1)]
    signs: dict[Ends, list[int]] = {"largest": [1], "smallest": [-1], "both": [1, -1]}
    return [
        _Side(sign, places, sign * values[places])
        for sign, places in zip(signs[search.ends], by_end, strict=True)
    ]


def _start(
    operator: Operator, locked: _Locked, generator: np.random.Generator
) -> tuple[Tensor, float]:
    """Return residual plus random direction, and the share of the latter in it."""

    def unit(vector: Tensor) -> Tensor:
        for _ in range(2):
            take_out(vector, locked.vectors)
        size = norm(vector)
        return vector / size if size > 0 else vector

    whole = unit(locked.rest.sum(0)) + unit(normal_vector(operator, generator))
    return whole, 1 / squared_norm(whole)


def _stepped(search: Search, pairs: Pairs, krylov: Krylov) -> bool:
    """Take a step, or return why not."""
    if krylov.invariant:
        return False
    if pairs.spent >= search.max_matvecs or krylov.full:
        pairs.end = Status.MAX_MATVECS
        return False
    krylov.step()
    pairs.spent += 1
    if not krylov.finite:
        pairs.end = Status.NONFINITE
        return False
    pairs.scale = max(pairs.scale, krylov.scale)
    pairs.noise = max(pairs.noise, krylov.noise)
    return True


def _needed(side: _Side, norm: float, tol: float, floor: float) -> float:
    """Return how large eigenvalues of the complement may be for good enough pairs."""
    allowed = np.maximum(tol * np.abs(side.heights), floor)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        gap = np.where(norm > allowed, norm**2 / allowed - allowed, norm - allowed)
    return float((side.heights - gap).min())


def _turned(krylov: Krylov, sign: int) -> tuple[np.ndarray, np.ndarray]:
    diagonal, below = krylov.recurrence
    return sign * diagonal, below


def _refound(
    search: Search, pairs: Pairs, locked: _Locked, krylov: Krylov, floor: float
) -> bool:
    """Compute the wanted pairs from both searches, once they are close enough."""
    count, leaks = len(locked.values), krylov.leaks
    both = np.block([[np.diag(locked.values), leaks], [leaks.T, krylov.projected]])
    values, turn = np.linalg.eigh((both + both.T) / 2)
    old, new = turn[:count], turn[count:]
    gram = (locked.rest.double() @ locked.rest.double().T).cpu().numpy()
    unseen = np.einsum("ij,ik,kj->j", old, gram - leaks @ leaks.T, old)
    coupling = krylov.recurrence[1][-1] * new[-1]
    bounds = np.sqrt(coupling**2 + np.maximum(unseen, 0.0))
    off = sharpened(bounds, gaps_of(values, bounds))
    places = np.unique(np.concatenate(wanted(values, search.k, search.ends)))
    enough = np.maximum(_CLOSER * search.tol * np.abs(values), floor)
    enough = (off <= enough) & (
        bounds <= np.maximum(search.cap * np.abs(values), floor)
    )
    if not (krylov.invariant or enough[places].all()):
        return False
    weights = torch.from_numpy(old[:, places].T.copy()).to(locked.vectors)
    pairs.vectors = weights @ locked.vectors + krylov.lift(new[:, places])
    pairs.values = values[places]
    return True


def _conclude(
    pairs: Pairs, locked: _Locked, krylov: Krylov, sides: list[_Side], share: float
) -> None:
    """Set the error of each value, given what may have been missed."""
    ritz = krylov.ritz()
    pairs.sharp = np.zeros(len(locked.values))
    for side in sides:
        turned = side.sign * ritz.values
        best = int(turned.argmax())
        beyond = float(turned[best]) + float(ritz.bounds[best])
        if not krylov.invariant:
            top = float(turned[best])
            beyond = undetected_bound(*_turned(krylov, side.sign), top, share)
        gap = side.heights - beyond
        near = 2 * locked.norm**2
        near = near / np.maximum(gap + np.hypot(gap, 2 * locked.norm), 1e-300)
        off = np.where(gap >= 0, near, locked.norm - gap)
        pairs.sharp[side.places] = np.maximum(pairs.sharp[side.places], off)

r"""Extreme eigenpairs, and that none beyond them was missed.

A warm start finds its pairs in a few products and is blind to a direction that took
the lead meanwhile. So the pairs $Y$ are multiplied once more, $HY = Y\Theta + R$, and a
second search runs in their complement, from their residual plus a fresh random
direction, until whatever it may have missed is too small to matter
(:mod:`~theodolite.instruments.solvers.missed`). With $U$ the bound on the complement's
eigenvalues and $\rho = \|R\|$ those of $H$ lie above the Ritz values by at most
$2\rho^2/(\eta + \sqrt{\eta^2 + 4\rho^2})$ where $\eta = \theta_i - U \ge 0$, and by
$U - \theta_i + \rho$ otherwise; never below them. Where the complement shows a value
that belongs among the wanted, the pairs are found anew from both, and it is searched
again.

References:
    Li and Li (2005), A note on eigenvalues of perturbed Hermitian matrices, Linear
    Algebra Appl. 395 (the quadratic bound).
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from theodolite.core import Status, stream
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.solvers.eigenpairs import (
    Ends,
    Pairs,
    Search,
    capacity_of,
    gaps_of,
    searched,
    sharpened,
    wanted,
)
from theodolite.instruments.solvers.lanczos import Krylov, gaussian
from theodolite.instruments.solvers.missed import excluded, least_share, reach
from theodolite.instruments.solvers.sums import norm, squared_norm, take_out

# The pairs are sought so much more closely than they are wanted that an error below
# the tolerance is a question of what was missed alone, also where the next value lies
# a hundredth away: a warm start does not see the gap.
_CLOSER, _GAP = 0.1, 0.01


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
    search = replace(search, cap=float(np.sqrt(_GAP * search.tol)))
    closer = _CLOSER * search.tol if search.stop == "value" else search.tol
    spare = max(2, search.max_matvecs - count)
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
    products = torch.stack([operator.matvec(row).detach() for row in rows])
    pairs.spent += len(rows)
    if not bool(torch.isfinite(products).all()):
        pairs.end = Status.NONFINITE
        return None
    block = (rows.double() @ products.double().T).cpu().numpy()
    pairs.noise = max(pairs.noise, float(np.linalg.norm(block - block.T)) / 2)
    values, turn = np.linalg.eigh((block + block.T) / 2)
    weights = torch.as_tensor(turn.T.copy()).to(rows)
    vectors, products = weights @ rows, weights @ products
    rest = products - torch.as_tensor(values).to(rows)[:, None] * vectors
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
    floor = pairs.floor(torch.finfo(operator.dtype).eps)
    needed = [_needed(side, locked.norm, search.tol, floor) for side in sides]
    while _stepped(search, pairs, krylov):
        tops = [float((side.sign * krylov.ritz().values).max()) for side in sides]
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
    found = wanted(values, search.k, search.ends)
    if search.ends == "magnitude":
        sizes = np.abs(values[found[0]])
        return [_Side(sign, found[0], sizes) for sign in (1, -1)]
    signs: dict[Ends, list[int]] = {"largest": [1], "smallest": [-1], "both": [1, -1]}
    return [
        _Side(sign, places, sign * values[places])
        for sign, places in zip(signs[search.ends], found, strict=True)
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

    whole = unit(locked.rest.sum(0)) + unit(gaussian(operator, generator))
    return whole, 1 / squared_norm(whole)


def _stepped(search: Search, pairs: Pairs, krylov: Krylov) -> bool:
    """Take a step, or say why not."""
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
    """Return how far the complement may reach if the pairs are to be good enough."""
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
    """Take the wanted pairs from both searches, once they are close enough."""
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
    weights = torch.as_tensor(old[:, places].T.copy()).to(locked.vectors)
    pairs.vectors = weights @ locked.vectors + krylov.lift(new[:, places])
    pairs.values = values[places]
    return True


def _conclude(
    pairs: Pairs,
    locked: _Locked,
    krylov: Krylov,
    sides: list[_Side],
    share: float,
) -> None:
    """State how far each value may be off, given what may have been missed."""
    ritz = krylov.ritz()
    pairs.sharp = np.zeros(len(locked.values))
    for side in sides:
        turned = side.sign * ritz.values
        best = int(turned.argmax())
        beyond = float(turned[best]) + float(ritz.bounds[best])
        if not krylov.invariant:
            top = float(turned[best])
            beyond = reach(*_turned(krylov, side.sign), top, share)
        gap = side.heights - beyond
        near = 2 * locked.norm**2
        near = near / np.maximum(gap + np.hypot(gap, 2 * locked.norm), 1e-300)
        off = np.where(gap >= 0, near, locked.norm - gap)
        pairs.sharp[side.places] = np.maximum(pairs.sharp[side.places], off)

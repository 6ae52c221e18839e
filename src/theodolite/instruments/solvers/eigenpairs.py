r"""Extreme eigenpairs of a symmetric operator, by sweeps of Lanczos.

A sweep runs in the complement of the pairs that are known before it. One sweep sees
one copy of a repeated eigenvalue; where its basis turns out invariant, or where
repeated eigenvalues are sought, more sweeps follow until one shows nothing that belongs
among the wanted.

References:
    Parlett (1998), The Symmetric Eigenvalue Problem, theorems 4.5.1 and 11.7.1 (an
    eigenvalue lies within the residual norm of a Ritz value, and within its square
    over the gap).
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from theodolite.core import MeasurementError, Status, stream

from ..operators.operator import Operator
from ..operators.vectors import combined, norm, normal_vector
from .lanczos import ON_DEVICE, Krylov, Ritz, Storage

Ends = Literal["both", "largest", "smallest", "magnitude"]
Stop = Literal["residual", "value"]


@dataclass(frozen=True)
class Search:
    """Which eigenpairs to search for, and with which budget.

    For every ``stop``, a residual is at most ``cap`` times the value. ``storage`` says
    where the basis is kept; known pairs are on the device.
    """

    k: int
    ends: Ends
    tol: float
    max_matvecs: int
    basis_bytes: int
    repeated: bool
    stop: Stop
    seed: int
    cap: float = np.inf
    storage: Storage = ON_DEVICE


@dataclass
class Pairs:
    """Known eigenpairs, in no order.

    Attributes:
        values: Ritz values.
        bounds: Norms of their residuals.
        vectors: Unit vectors as rows.
        gaps: Distances to the nearest other value, less that one's own residual.
        couplings: Components of the residuals along ``pending``.
        pending: For each pair, which row of ``directions`` its residual lies along.
        directions: One residual direction a sweep.
        scale: Lower bound on the norm of the operator.
        noise: Estimated error of a product.
        spent: Products used so far.
        steps: Products of the first sweep.
        sharp: Bounds that hold unless something was missed, where that was tested.
        graph_norms: What rounding in the graph adds to the residuals, where measured.
        graph_shifts: By how much it moves the values.
        end: NONFINITE or MAX_MATVECS where the search was cut short, else CONVERGED.
    """

    vectors: Tensor
    directions: Tensor
    values: np.ndarray = field(default_factory=lambda: np.empty(0))
    bounds: np.ndarray = field(default_factory=lambda: np.empty(0))
    gaps: np.ndarray = field(default_factory=lambda: np.empty(0))
    couplings: np.ndarray = field(default_factory=lambda: np.empty(0))
    pending: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))
    scale: float = 0.0
    noise: float = 0.0
    spent: int = 0
    steps: int = 0
    sharp: np.ndarray | None = None
    graph_norms: np.ndarray | None = None
    graph_shifts: np.ndarray | None = None
    end: Status = Status.CONVERGED

    def floor(self, eps: float) -> float:
        """Return the size below which a residual or an eigenvalue is rounding."""
        return max(8 * eps * self.scale, self.noise)

    def foreseen(self, weights: np.ndarray) -> Tensor:
        r"""Return the product with $\sum_i w_i y_i$ that the recurrence predicts.

        It is $\sum_i w_i (\theta_i y_i + r_i)$, with residuals $r_i$ along
        ``directions``.
        """
        along = np.zeros(len(self.directions))
        np.add.at(along, self.pending, weights * self.couplings)
        product = _weighted(weights * self.values, self.vectors)
        return product.add_(_weighted(along, self.directions))


def wanted(values: np.ndarray, k: int, ends: Ends) -> list[np.ndarray]:
    """Return the places of the wanted values, best first, one array an end."""
    ascending = np.argsort(values, kind="stable")
    top, bottom = ascending[::-1][:k], ascending[:k]
    if ends == "magnitude":
        return [np.argsort(-np.abs(values), kind="stable")[:k]]
    return {"both": [top, bottom], "largest": [top], "smallest": [bottom]}[ends]


def gaps_of(values: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return each value's distance to the nearest interval of another."""
    distance = np.abs(values[:, None] - values[None]) - bounds
    np.fill_diagonal(distance, np.inf)
    return distance.min(axis=1, initial=np.inf)


def sharpened(bounds: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Return residual² over the gap if a gap is known and that is smaller."""
    known = (gaps > 0) & np.isfinite(gaps)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = np.where(known, bounds**2 / gaps, np.inf)
    return np.minimum(bounds, squares)


def searched(
    operator: Operator, search: Search, *, start: Tensor | None = None
) -> Pairs:
    """Return eigenpairs with residuals as predicted by the recurrence."""
    n = operator.shape[1]
    empty = torch.empty(0, n, dtype=operator.torch_dtype, device=operator.device)
    pairs, sweep = Pairs(vectors=empty, directions=empty), 0
    while sweep < n:
        random = normal_vector(operator, stream(search.seed, "lanczos", sweep))
        first = random if sweep or start is None else _warm(start, random)
        with operator.together():
            again = _sweep(operator, search, pairs, first)
        if not again:
            break
        sweep += 1
    return pairs


def _warm(start: Tensor, random: Tensor) -> Tensor:
    # A tenth of noise keeps directions in reach that the start lacks.
    return start / norm(start) + 0.1 * random / norm(random)


def _sweep(operator: Operator, search: Search, pairs: Pairs, first: Tensor) -> bool:
    """Run Lanczos beside the known pairs, add new ones, return whether to go on."""
    capacity = capacity_of(operator, search, len(pairs.values))
    krylov = Krylov(
        operator,
        first,
        capacity=capacity,
        locked=pairs.vectors,
        scale=pairs.scale,
        storage=search.storage,
    )
    ritz = None
    while True:
        if pairs.spent >= search.max_matvecs - 1:  # one is kept for the check
            pairs.end = Status.MAX_MATVECS
            break
        if krylov.full and ritz is not None:
            krylov.restart(ritz, _kept(ritz, search, krylov.capacity))
        krylov.step()
        pairs.spent += 1
        if not krylov.finite:
            pairs.end = Status.NONFINITE
            break
        pairs.scale = max(pairs.scale, krylov.scale)
        pairs.noise = max(pairs.noise, krylov.noise)
        ritz = krylov.ritz()
        # A copy takes as many products to show as the first of its kind.
        fair = krylov.size >= pairs.steps
        if krylov.invariant or _settled(ritz, search, pairs, operator, fair=fair):
            break
    if ritz is None:
        return False
    pairs.steps = pairs.steps or krylov.size
    tops = _extremes(ritz, search)
    first_sweep = len(pairs.values) == 0
    exhausted = krylov.invariant and krylov.size == krylov.room
    _merge(krylov, ritz, search, pairs)
    if pairs.end is not Status.CONVERGED or exhausted:
        return False
    if first_sweep and not (krylov.nearly or search.repeated):
        return False
    return _more_to_come(tops, search, pairs, operator)


def capacity_of(operator: Operator, search: Search, locked: int) -> int:
    """Return how many vectors the basis may hold, or refuse."""
    n = operator.shape[1]
    row = n * torch.finfo(operator.torch_dtype).bits // 8
    ends = 2 if search.ends == "both" else 1
    least, pairs = min(n, least_basis(search.k, ends)), min(n, ends * search.k)
    # The basis, its pending vector, the known pairs and as many new ones.
    held = int(search.basis_bytes // row) - 1 - locked - pairs
    if held < least:
        wanted_bytes = (least + 1 + locked + pairs) * row
        raise MeasurementError(
            f"{search.k} eigenpairs of {n:,} parameters take a basis of "
            f"{wanted_bytes / 2**30:.3g} GiB, allowed are "
            f"{search.basis_bytes / 2**30:.3g}: ask for fewer, choose fewer "
            "parameters, or raise basis_bytes"
        )
    return min(held, max(least, search.max_matvecs))


def least_basis(k: int, ends: int) -> int:
    """Return how many vectors a search must keep, at so many ends of the spectrum."""
    # Room for the wanted twice over and a few more, or restarts would not converge.
    return 2 * ends * k + 6


def _kept(ritz: Ritz, search: Search, capacity: int) -> np.ndarray:
    # Half the basis, from the ends that are wanted (Wu and Simon 2000, §4).
    ends = 2 if search.ends == "both" else 1
    places = wanted(ritz.values, max(search.k, capacity // (2 * ends)), search.ends)
    return np.unique(np.concatenate(places))[: capacity - 1]


def _settled(
    ritz: Ritz, search: Search, pairs: Pairs, operator: Operator, *, fair: bool
) -> bool:
    """Whether every wanted pair is known to the tolerance.

    After the first sweep the best new value must be known too, or stay clearly below
    the wanted after a fair number of products.
    """
    old = len(pairs.values)
    values = np.concatenate([pairs.values, ritz.values])
    if len(values) < min(search.k, operator.shape[1]):
        return False
    floor = pairs.floor(torch.finfo(operator.torch_dtype).eps)
    tol = search.tol / 3 if search.repeated else search.tol  # for what leaks between
    off = ritz.bounds
    if search.stop == "value":
        off = sharpened(off, gaps_of(ritz.values, off))
    good = off <= np.maximum(tol * np.abs(ritz.values), floor)
    if np.isfinite(search.cap):
        good &= ritz.bounds <= np.maximum(search.cap * np.abs(ritz.values), floor)
    places = np.concatenate(wanted(values, search.k, search.ends))
    fresh = places[places >= old] - old
    if not good[fresh].all():
        return False
    if not old:
        return True
    for place, best, last in _extremes_and_last(ritz, search, pairs):
        below = fair and best + ritz.bounds[place] < last
        if not (good[place] or below):
            return False
    return True


def _height(values: np.ndarray, ends: Ends) -> list[np.ndarray]:
    """Return, per end, numbers that are larger the more a value is wanted."""
    if ends == "magnitude":
        return [np.abs(values)]
    return {"both": [values, -values], "largest": [values], "smallest": [-values]}[ends]


def _extremes(ritz: Ritz, search: Search) -> list[float]:
    return [float(height.max()) for height in _height(ritz.values, search.ends)]


def _extremes_and_last(
    ritz: Ritz, search: Search, pairs: Pairs
) -> list[tuple[int, float, float]]:
    """Return, per end, the best new value and the last wanted one so far."""
    rows = []
    new, old = _height(ritz.values, search.ends), _height(pairs.values, search.ends)
    for fresh, known in zip(new, old, strict=True):
        place = int(fresh.argmax())
        last = np.sort(known)[::-1][: search.k][-1]
        if len(known) < search.k:
            last = -np.inf
        rows.append((place, float(fresh[place]), float(last)))
    return rows


def _more_to_come(
    tops: list[float], search: Search, pairs: Pairs, operator: Operator
) -> bool:
    """Whether the complement may hold a value that belongs among the wanted.

    The best value of a sweep bounds all that is left after it, so nothing is missing
    once the last wanted value reaches it.
    """
    floor = pairs.floor(torch.finfo(operator.torch_dtype).eps)
    for top, known in zip(tops, _height(pairs.values, search.ends), strict=True):
        if len(known) < search.k:
            return True
        last = np.sort(known)[::-1][: search.k][-1]
        if last < top - max(2 * search.tol * abs(top), 2 * floor):
            return True
    return False


def _merge(krylov: Krylov, ritz: Ritz, search: Search, pairs: Pairs) -> None:
    """Add a sweep's best pairs and drop those no longer wanted."""
    places = np.unique(np.concatenate(wanted(ritz.values, search.k, search.ends)))
    sweep = len(pairs.directions)
    pairs.directions = torch.cat([pairs.directions, krylov.pending[None]])
    values = np.concatenate([pairs.values, ritz.values[places]])
    bounds = np.concatenate([pairs.bounds, ritz.bounds[places]])
    gaps = np.concatenate([pairs.gaps, gaps_of(ritz.values, ritz.bounds)[places]])
    gaps = np.minimum(gaps, gaps_of(values, bounds))
    couplings = np.concatenate([pairs.couplings, ritz.couplings[places]])
    pending = np.concatenate([pairs.pending, np.full(len(places), sweep)])
    vectors = torch.cat([pairs.vectors, krylov.lift(ritz.vectors[:, places])])
    best = np.unique(np.concatenate(wanted(values, search.k, search.ends)))
    pairs.values, pairs.bounds, pairs.gaps = values[best], bounds[best], gaps[best]
    pairs.couplings, pairs.pending = couplings[best], pending[best]
    pairs.vectors = vectors[torch.as_tensor(best, device=vectors.device)]


def verify(operator: Operator, search: Search, pairs: Pairs) -> None:
    r"""Multiply once more, and add the residual that the recurrence did not predict.

    For random signs $c_i$ the norm of $\sum_i c_i (Hy_i - \theta_i y_i - r_i)$ is, in
    mean square, that of all the unforeseen residuals together.
    """
    if pairs.end is Status.NONFINITE or not len(pairs.values):
        return
    generator = stream(search.seed, "verify")
    signs = generator.choice([-1.0, 1.0], size=len(pairs.values))
    signs /= np.sqrt(len(signs))
    product = operator.product(_weighted(signs, pairs.vectors)).detach()
    pairs.spent += 1
    rest = product - pairs.foreseen(signs)
    if not bool(torch.isfinite(rest).all()):
        pairs.end = Status.NONFINITE
        return
    pairs.bounds = pairs.bounds + norm(rest) * np.sqrt(len(signs))


def _weighted(weights: np.ndarray, rows: Tensor) -> Tensor:
    return combined(torch.from_numpy(weights).to(rows), rows)

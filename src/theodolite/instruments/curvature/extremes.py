"""Extreme eigenvalues of the loss Hessian, each with a residual and a certificate."""

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, Unpack

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ConfigError, Dims, Reading, Status, Stopwatch

from ..model.process_state import expected
from ..operators.operator import Operator
from ..operators.rounding_noise import EigenvalueNoise, eigenvalue_noise
from ..passes.batches import Batches
from ..passes.forecast import rounds
from ..solvers.certified import certified_pairs
from ..solvers.eigenpairs import (
    Ends,
    Pairs,
    Search,
    Stop,
    capacity_of,
    least_basis,
    searched,
    sharpened,
    verify,
    wanted,
)
from ..solvers.lanczos import Placement, Storage, storage_for
from .model_instruments import (
    CurvatureSettings,
    Method,
    Subject,
    check_count,
    goes_dense,
    measured,
    norms_of,
    symmetric,
)
from .spectra import dense_pairs

# Default probability of missing a leading eigenvalue, if ``stop`` is "value" or the
# start is warm.
CHANCE = 0.01
_ROUNDINGS = 32
# The rounding error, relative to the largest eigenvalue, is measured again once a size
# that it depends on has changed by this factor, up or down: over 144 readings of
# networks in training, and of weights and offsets that grow, none was off by more than
# its sharp error; with the first measurement for all, 24 were, by up to 17 times.
OUTDATED = 1.25


@dataclass(frozen=True, kw_only=True, eq=False)
class ExtremeEigenvalues(Reading):
    r"""Eigenvalues at the ends of a symmetric operator's spectrum.

    ``errors`` is certified for a symmetric operator: some eigenvalue lies within it,
    since it bounds $\|Hv - \lambda v\|$ for a unit vector plus the noise of a product.
    ``sharp_errors`` is $\|Hv - \lambda v\|^2/\text{gap}$ if that is smaller; it assumes
    that no eigenvalue between those listed was missed. With ``chance``, or with
    ``stop="value"``, this assumption is tested; it then fails with that probability.

    Both errors include the rounding of the model's graph. In float32 it is measured
    against float64 with one product per vector; if it is within the tolerance, one
    product with all vectors together gives a bound at 95 % confidence, and checks the
    residuals as well.

    Assumes: a single sweep of Lanczos
    sees one copy of a repeated eigenvalue. Copies show where the basis becomes
    invariant, in dense matrices, and on request (``repeated=True``); else the list may
    skip them. Every value listed is an eigenvalue within its error.

    Attributes:
        eigenvalues: The k largest, descending (by magnitude with ``"magnitude"``).
        residuals: $\|Hv - \lambda v\| / |\lambda|$ of each.
        errors: Certified bound on each.
        sharp_errors: Bound on each if none was missed.
        statuses: Status of each; ROUNDING if it cannot be distinguished from 0. This
            does not change ``status``, since 0 is right within the error.
        smallest: The k smallest, ascending; empty unless requested.
        smallest_residuals: As ``residuals``.
        smallest_errors: As ``errors``.
        smallest_statuses: As ``statuses``.
        graph_error: Rounding error of a product with an eigenvector, relative to the
            largest eigenvalue; 0 if it was not measured. Both errors include it.
        eigenvectors: Unit vectors of ``eigenvalues`` as columns, None unless requested.
        smallest_eigenvectors: Those of ``smallest``.
    """

    eigenvalues: Annotated[np.ndarray, Dims("rank", error="errors")]
    residuals: Annotated[np.ndarray, Dims("rank")]
    errors: Annotated[np.ndarray, Dims("rank")]
    sharp_errors: Annotated[np.ndarray, Dims("rank")]
    statuses: tuple[Status, ...]
    smallest: Annotated[np.ndarray, Dims("rank_from_below", error="smallest_errors")]
    smallest_residuals: Annotated[np.ndarray, Dims("rank_from_below")]
    smallest_errors: Annotated[np.ndarray, Dims("rank_from_below")]
    smallest_statuses: tuple[Status, ...]
    graph_error: float = 0.0
    eigenvectors: np.ndarray | None = None
    smallest_eigenvectors: np.ndarray | None = None


@measured
def extreme_eigenvalues(
    model: Subject,
    batches: Batches | None = None,
    *,
    k: int = 1,
    ends: Ends = "both",
    tol: float = 1e-6,
    max_matvecs: int = 200,
    seed: int = 0,
    stop: Stop = "residual",
    repeated: bool = False,
    vectors: bool = False,
    method: Method = "auto",
    start: Tensor | None = None,
    chance: float | None = None,
    graph_error: float | None = None,
    graph_error_at: float | None = None,
    basis_bytes: int = 4 * 2**30,
    basis: Placement = "auto",
    **settings: Unpack[CurvatureSettings],
) -> ExtremeEigenvalues:
    r"""Measure the largest and smallest eigenvalues of the loss Hessian.

    Args:
        model: Any module; or a :class:`Problem` or an operator, without ``batches``.
        batches: The module's data.
        k: How many at each end.
        ends: "both", "largest", "smallest", or "magnitude" for the largest $|\lambda|$.
        tol: Wanted $\|Hv - \lambda v\| / |\lambda|$; residuals at the level of rounding
            count as converged at any tolerance.
        max_matvecs: Largest number of products, one of which checks the residuals.
        seed: Seed of the starting vector.
        stop: What must fall below ``tol``: "residual", or "value" for the relative
            ``sharp_errors``, after a test that no eigenvalue beyond was missed.
        repeated: Spend more products on copies of repeated eigenvalues.
        vectors: Whether to return eigenvectors.
        method: "dense", "products", or "auto": dense up to 1000 parameters if
            ``max_matvecs`` is as large.
        start: Vector to start from, such as an eigenvector of a nearby operator.
        chance: Probability that ``sharp_errors`` misses an eigenvalue beyond those
            listed. The test is a second search from a random direction, and doubles the
            products. By default 1 % if the start is warm or ``stop="value"``; otherwise
            nothing is tested.
        graph_error: Rounding error of a product in the graph, relative to the largest
            eigenvalue, if it is known; measured by default.
        graph_error_at: Largest eigenvalue, in magnitude, at which ``graph_error`` was
            measured. It is measured again if that has grown 1.25 times, or fallen below
            0.8 times.
        basis_bytes: Memory limit of the basis, which is restarted to stay below it.
        basis: Kept on "device", "host", "shared" over a team, or "auto" (fastest).
        settings: Those of :class:`Problem`, such as ``loss`` and ``norm_mode``, and
            ``operator``: ``Hessian``, ``GaussNewton``, ``Fisher`` or
            ``EmpiricalFisher``.

    Example:
        >>> from torch import nn
        >>> from theodolite.instruments import HalfSquareLoss
        >>> layer = nn.Linear(2, 1, bias=False, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
        >>> reading = extreme_eigenvalues(
        ...     layer, (x, x[:, :1]), loss=HalfSquareLoss(), norm_mode="batch"
        ... )
        >>> reading.eigenvalues, reading.smallest
        (array([2.]), array([0.5]))
    """
    operator = symmetric(model)
    _check(k, ends, tol, max_matvecs, chance)
    if chance is None and (start is not None or stop == "value"):
        chance = CHANCE
    watch, before = Stopwatch(), operator.passes
    expected(max_matvecs, bounded=True)
    search = Search(k, ends, tol, max_matvecs, basis_bytes, repeated, stop, seed)
    exact = start is None and goes_dense(operator, method, max_matvecs)
    if not exact:
        tested = chance is not None
        storage = _storage(operator, search, basis, tested=tested)
        search = replace(search, storage=storage)
    if exact:
        pairs = dense_pairs(operator, k, ends)
    elif chance is None:
        pairs = searched(operator, search)
    else:
        pairs = certified_pairs(operator, search, start=start, chance=chance)
    eps = torch.finfo(operator.torch_dtype).eps
    if pairs.end is not Status.EXACT:
        if outdated(graph_error_at, float(np.abs(pairs.values).max(initial=0.0))):
            graph_error = None
        noise = None
        if graph_error is not None:
            norms = np.full(len(pairs.values), graph_error * pairs.scale)
            noise = EigenvalueNoise(norms, norms)
        elif _is_rounded(operator, pairs, eps):
            noise = eigenvalue_noise(
                operator,
                pairs.values,
                pairs.vectors,
                _tolerated(pairs, eps, tol),
                # The test for missed pairs multiplied them after the recurrence.
                pairs.foreseen if chance is None else None,
            )
        if noise is not None:
            pairs.graph_norms, pairs.graph_shifts = noise.norms, noise.shifts
        if noise is not None and noise.unforeseen is not None:
            pairs.bounds = pairs.bounds + noise.unforeseen
        elif chance is None:
            verify(operator, search, pairs)
    count = min(k, operator.shape[1])
    counts = [0 if ends == "smallest" else count]
    counts.append(count if ends in ("both", "smallest") else 0)
    places = places_of(pairs, k, ends)
    top, bottom = (
        read_end(pairs, p, c, tol, eps, stop)
        for p, c in zip(places, counts, strict=True)
    )
    told = [s for s in (*top.statuses, *bottom.statuses) if s is not Status.ROUNDING]
    status = Status.worst([pairs.end, *told])
    return ExtremeEigenvalues(
        eigenvalues=top.values,
        residuals=top.residuals,
        errors=top.errors,
        sharp_errors=top.sharp_errors,
        statuses=top.statuses,
        smallest=bottom.values,
        smallest_residuals=bottom.residuals,
        smallest_errors=bottom.errors,
        smallest_statuses=bottom.statuses,
        graph_error=_relative(pairs),
        eigenvectors=_columns(pairs, places[0]) if vectors else None,
        smallest_eigenvectors=_columns(pairs, places[1]) if vectors else None,
        status=status,
        **norms_of(operator),
        seed=None if pairs.end is Status.EXACT else seed,
        cost=watch.read(passes=operator.passes - before),
        method="dense" if exact else search.storage.told(_told(pairs, chance)),
    )


def _storage(
    operator: Operator, search: Search, wish: Placement, *, tested: bool
) -> Storage:
    """Return where the basis is kept; refuse one too small before any product."""
    ends = 2 if search.ends == "both" else 1
    if tested:  # beside the known pairs
        count = min(ends * search.k, operator.shape[1])
        capacity_of(operator, search, count)
    most, least = capacity_of(operator, search, 0), least_basis(search.k, ends)
    return storage_for(operator, wish, vectors=most + 1, least=min(least, most) + 1)


def _columns(pairs: Pairs, places: np.ndarray) -> np.ndarray:
    return pairs.vectors.double().cpu().numpy()[places].T


def _told(pairs: Pairs, chance: float | None) -> str:
    sweeps = len(pairs.directions)
    words = f"Lanczos, {pairs.spent} products"
    words += f", {sweeps} sweeps" if sweeps > 1 else ""
    return words if chance is None else f"{words}, {chance:.1%} chance of a miss"


def _check(
    k: int, ends: str, tol: float, max_matvecs: int, chance: float | None
) -> None:
    if chance is not None and not 0 < chance < 1:
        raise ConfigError(f"chance is {chance!r}: pass a number between 0 and 1")
    check_count("k", k)
    check_count("max_matvecs", max_matvecs, 2)
    if not 0 <= tol < 1:
        raise ConfigError(f"tol is {tol!r}: pass a number from 0 to below 1, as 1e-6")


def outdated(then: float | np.ndarray | None, now: float | np.ndarray) -> bool:
    """Return whether a size changed so much that rounding must be measured again."""
    if then is None:
        return False
    alike = np.shape(then) == np.shape(now)
    return not (alike and np.all((then / OUTDATED < now) & (now < then * OUTDATED)))


def _is_rounded(operator: Operator, pairs: Pairs, eps: float) -> bool:
    """Return whether rounding in the graph may matter, and has to be measured."""
    coarse = pairs.noise > 1e3 * eps * pairs.scale
    return bool(len(pairs.values)) and (rounds(operator) or coarse)


def _tolerated(pairs: Pairs, eps: float, tol: float) -> np.ndarray:
    """Return the rounding of each pair that needs no closer look; 0 where any does."""
    granted = tol * np.abs(pairs.values)
    # A bound on all vectors is never below a few roundings of a product.
    return np.where(granted > _ROUNDINGS * eps * pairs.scale, granted, 0.0)


def _relative(pairs: Pairs) -> float:
    if pairs.graph_norms is None or not pairs.scale:
        return 0.0
    return float(pairs.graph_norms.max(initial=0.0)) / pairs.scale


class End(NamedTuple):
    """The eigenvalues at one end, in order, with their errors.

    Attributes:
        values: The eigenvalues.
        residuals: Relative to the values.
        errors: Certified bounds.
        sharp_errors: Bounds if none was missed.
        statuses: Status of each.
    """

    values: np.ndarray
    residuals: np.ndarray
    errors: np.ndarray
    sharp_errors: np.ndarray
    statuses: tuple[Status, ...]


def places_of(pairs: Pairs, k: int, ends: Ends) -> list[np.ndarray]:
    """Return the indices of the largest wanted pairs, and of the smallest."""
    places, none = wanted(pairs.values, k, ends), np.empty(0, dtype=int)
    if ends == "smallest":
        return [none, *places]
    return places if ends == "both" else [*places, none]


def read_end(
    pairs: Pairs, places: np.ndarray, count: int, tol: float, eps: float, stop: Stop
) -> End:
    """Return one end of the spectrum, from pairs.

    Args:
        pairs: The pairs.
        places: Which of them are at this end, in their order.
        count: How many were wanted; missing ones are NaN.
        tol: Wanted residual, relative to the value.
        eps: Rounding of a product.
        stop: What had to fall below ``tol``.
    """
    values, bounds, gaps = (x[places] for x in (pairs.values, pairs.bounds, pairs.gaps))
    floor = pairs.noise if pairs.end is Status.EXACT else pairs.floor(eps)
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = np.where(bounds == 0, 0.0, bounds / np.abs(values))
    sharp = sharpened(bounds, gaps) if pairs.sharp is None else pairs.sharp[places]
    decides = sharp if stop == "value" else bounds
    if pairs.sharp is not None:
        decides = np.maximum(decides, sharp)
    statuses = [
        _status(pairs.end, value, bound, tol, floor)
        for value, bound in zip(values, decides, strict=True)
    ]
    if pairs.graph_norms is not None and pairs.graph_shifts is not None:
        moved, shift = pairs.graph_norms[places], pairs.graph_shifts[places]
        # The part of (bounds + moved)² over the gap that is not in ``sharp`` yet.
        more = sharpened(np.sqrt(moved * (2 * bounds + moved)), gaps)
        bounds, sharp = bounds + moved, sharp + shift + np.minimum(more, moved)
        if pairs.sharp is None:  # the test for missed values knows more
            sharp = np.minimum(sharp, bounds)
        statuses = [
            Status.ROUNDING if abs(value) <= floor + off else status
            for status, value, off in zip(statuses, values, shift, strict=True)
        ]
    errors, sharp = bounds + floor, sharp + floor
    lost = count - len(places)  # the search stopped before it had so many
    return End(
        values=np.append(values, np.full(lost, np.nan)),
        residuals=np.append(residuals, np.full(lost, np.inf)),
        errors=np.append(errors, np.full(lost, np.inf)),
        sharp_errors=np.append(sharp, np.full(lost, np.inf)),
        statuses=(*statuses, *[pairs.end] * lost),
    )


def _status(
    end: Status, value: float, bound: float, tol: float, floor: float
) -> Status:
    if abs(value) <= floor and floor > 0:
        return Status.ROUNDING
    if end is Status.EXACT:
        return Status.EXACT
    if bound <= max(tol * abs(value), floor):
        return Status.CONVERGED
    return end if end is not Status.CONVERGED else Status.ROUNDING

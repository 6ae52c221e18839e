"""One end of a spectrum, from eigenpairs: values, errors and statuses."""

from typing import NamedTuple

import numpy as np

from theodolite.core import Status

from ..solvers.eigenpairs import Ends, Pairs, Stop, sharpened, wanted


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

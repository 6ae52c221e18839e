"""All critical points of an energy on a sphere, or a warning that some are missing."""

import math
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError, Stopwatch, stream

from ..model.process_state import measuring
from ..model.restoring import preserve
from .newton import Distinct, Energy, descend, landscape
from .search import CriticalPoints, Search

# Distance, over the radius, below which two ends of Newton's method are one point: far
# above its error and far below how near two critical points come by chance.
_APART = 1e-6
# Two calls on the same point may differ by rounding, not by more.
_SAME = 1e-9


@measuring()
def critical_points(
    energy: Energy,
    *,
    dimension: int,
    radius: float,
    starts: int = 100,
    max_starts: int = 3200,
    max_steps: int = 12,
    tol: float = 1e-11,
    antipodal: bool = False,
    bound: int | None = None,
    seed: int = 0,
) -> CriticalPoints:
    r"""Find the critical points of an energy on a sphere and count them by index.

    Newton's method runs from random starts, in rounds that double. The search ends
    when nothing speaks for a missing point: the alternating sum over indices is the
    Euler characteristic of the sphere, every point was met twice or more, the negative
    of each point is there where the energy is even or odd, and none has a singular
    Hessian. The alternating sum alone would not see two that are missing together, a
    saddle and its neighbour; that a point with a basin as large as those seen is
    missing has then, by Good and Turing, a chance of about 1 in the number of starts.

    Args:
        energy: Maps a batch of points (batch, dimension), float64, to their energies
            (batch,), each from its own row; a module is left as found.
        dimension: Dimension of the space around the sphere, 2 or more.
        radius: Radius of the sphere.
        starts: Starts in the first round.
        max_starts: Starts in all; a search not complete by then says so.
        max_steps: Of Newton's method, a start; those that arrive do so in fewer.
        tol: Tangent gradient at which it stops, over that at random points.
        antipodal: Whether the energy is known to be even or odd, so that critical
            points come in pairs of opposite sign.
        bound: Greatest number possible, if one is known, such as
            $2\,((p-1)^\Lambda - 1)/(p-2)$ of a single order p.
        seed: Seed of the starts.

    Example:
        >>> levels = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
        >>> points = critical_points(
        ...     lambda w: (levels * w**2).sum(1), dimension=3, radius=1.0, starts=50
        ... )
        >>> points.counts, points.complete
        (array([2, 2, 2]), True)
    """
    watch = Stopwatch()
    _check(dimension, radius, starts, max_starts, tol)
    module = energy if isinstance(energy, nn.Module) else None
    with nullcontext() if module is None else preserve(module):
        device = _device(module)
        rng, apart = stream(seed, "starts"), _APART * radius
        distinct, scale, passes, arrived, tried = (
            Distinct(dimension, apart),
            0.0,
            0,
            0,
            0,
        )
        while True:
            count = min(tried or starts, max_starts - tried)
            drawn = torch.from_numpy(_on_sphere(rng, count, dimension, radius))
            drawn = drawn.to(device)
            scale = scale or _scale(energy, drawn)
            ends, spent = descend(energy, drawn, tol=tol * scale, max_steps=max_steps)
            distinct.add(
                (torch.cat([ends, -ends]) if antipodal else ends).cpu().numpy()
            )
            here = landscape(energy, torch.from_numpy(distinct.points).to(device))
            search = Search(
                distinct=distinct,
                here=here,
                radius=radius,
                scale=scale,
                starts=(arrived := arrived + len(ends)),
                apart=apart,
                antipodal=antipodal,
                bound=bound,
            )
            tried, passes = tried + count, passes + spent + here.passes
            if search.complete or tried >= max_starts or not math.isfinite(scale):
                return search.reading(seed=seed, watch=watch, passes=passes)


def _check(
    dimension: int, radius: float, starts: int, max_starts: int, tol: float
) -> None:
    if dimension < 2:
        raise MeasurementError(
            f"a sphere in {dimension} dimensions was asked for: pass 2 or more"
        )
    if not 0 < radius < math.inf or not 0 < tol < 1:
        raise MeasurementError(
            f"radius is {radius!r} and tol {tol!r}: pass a positive radius, and a tol "
            "between 0 and 1"
        )
    if not 1 <= starts <= max_starts:
        raise MeasurementError(
            f"starts is {starts!r} and max_starts {max_starts!r}: pass from 1 up, and "
            "no more starts than max_starts"
        )


def _device(module: nn.Module | None) -> torch.device:
    """Return the device of a module, and make the module deterministic."""
    if module is None:
        return torch.device("cpu")
    module.eval()
    numbers = [*module.parameters(), *module.buffers()]
    other = {str(t.dtype) for t in numbers if t.is_floating_point()} - {"torch.float64"}
    if other:
        raise MeasurementError(
            f"the energy computes in {', '.join(sorted(other))}, too coarse to tell "
            "critical points apart: pass it in float64, such as module.double()"
        )
    return numbers[0].device if numbers else torch.device("cpu")


def _on_sphere(
    rng: np.random.Generator, count: int, dimension: int, radius: float
) -> np.ndarray:
    drawn = rng.standard_normal((count, dimension))
    return radius * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _scale(energy: Energy, points: Tensor) -> float:
    """Return the gradient's size at random points; check that rows are independent."""
    with torch.no_grad():
        together, alone = energy(points), energy(points[:1])
    here = landscape(energy, points)
    size = float((here.gradients**2).sum(1).mean().sqrt())
    if not math.isfinite(size):
        return math.nan
    gap = float((together[0] - alone[0]).abs())
    if gap > _SAME * float(together.abs().max()):
        raise MeasurementError(
            f"the energy of a point moved by {gap:.2g} when other points stood beside "
            "it: compute each row's energy from that row alone"
        )
    return size

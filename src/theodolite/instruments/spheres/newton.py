r"""Newton's method on a sphere, from many starts at once; distinct end points.

At $w$ on the sphere of radius R, with $P = I - ww^T/R^2$: the gradient is $P\nabla E$
and the Hessian $P\nabla^2E\,P - (w\cdot\nabla E/R^2)\,P$. A step solves in the tangent
space and goes back to the sphere. It converges to critical points of every index.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from torch import Tensor

from theodolite.core import MeasurementError


class Distinct:
    """A growing set of points, no two of them nearer than a distance.

    Attributes:
        points: Shape (count, dimension).
        hits: How often each was met.
    """

    def __init__(self, dimension: int, apart: float) -> None:
        self.points = np.empty((0, dimension))
        self.hits = np.zeros(0, dtype=np.int64)
        self._apart = apart

    def add(self, arrivals: np.ndarray) -> None:
        """Add points; a point near a known one counts as a hit of that one."""
        if not len(arrivals):
            return
        every = np.concatenate([self.points, arrivals])
        pairs = KDTree(every).query_pairs(self._apart, output_type="ndarray")
        links = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(every),) * 2)
        count, group = connected_components(links, directed=False)
        # The first of each group represents it, so that known points keep their place.
        first = np.full(count, len(every))
        np.minimum.at(first, group, np.arange(len(every)))
        order = np.argsort(first)
        met = np.zeros(count, dtype=np.int64)
        np.add.at(met, group[len(self.points) :], 1)
        np.add.at(met, group[: len(self.points)], self.hits)
        self.points, self.hits = every[first[order]], met[order]


Energy = Callable[[Tensor], Tensor]

# Longest step as an angle: far from a root Newton's steps point nowhere, and short
# ones visit the neighbourhood instead of leaving it.
_LONGEST = 0.35


@dataclass(frozen=True)
class Landscape:
    """Energies, tangent gradients and tangent Hessians at points.

    Attributes:
        energies: Shape (points,).
        gradients: Shape (points, dimension), tangent.
        hessians: Shape (points, dimension, dimension), zero along the point.
        passes: Backward passes that it took.
    """

    energies: Tensor
    gradients: Tensor
    hessians: Tensor
    passes: int


def landscape(energy: Energy, points: Tensor) -> Landscape:
    """Differentiate an energy twice along the sphere through each point."""
    points = points.detach().requires_grad_()
    dimension = points.shape[1]
    with torch.enable_grad():
        energies = energies_of(energy, points)
        (slope,) = torch.autograd.grad(energies.sum(), points, create_graph=True)
        columns = [_column(slope[:, i], points) for i in range(dimension)]
    bent = torch.stack(columns, dim=1)
    bent = (bent + bent.transpose(1, 2)) / 2
    slope, points = slope.detach(), points.detach()
    square = (points**2).sum(1)
    eye = torch.eye(dimension, dtype=points.dtype, device=points.device)
    flat = eye - points[:, :, None] * points[:, None, :] / square[:, None, None]
    radial = (points * slope).sum(1) / square
    hessians = flat @ bent @ flat - radial[:, None, None] * flat
    gradients = (flat @ slope[:, :, None])[:, :, 0]
    return Landscape(energies.detach(), gradients, hessians, 1 + dimension)


def _column(slope: Tensor, points: Tensor) -> Tensor:
    if not slope.requires_grad:  # linear in the points
        return torch.zeros_like(points)
    (column,) = torch.autograd.grad(
        slope.sum(), points, retain_graph=True, allow_unused=True
    )
    return torch.zeros_like(points) if column is None else column


def energies_of(energy: Energy, points: Tensor) -> Tensor:
    """Return the energies of points, or say what is wrong with them."""
    energies = energy(points)
    if not isinstance(energies, Tensor) or energies.shape != points.shape[:1]:
        came = (
            tuple(energies.shape)
            if isinstance(energies, Tensor)
            else type(energies).__name__
        )
        raise MeasurementError(
            f"the energy of {points.shape[0]} points came as {came}: return one number "
            f"a point, a tensor of shape ({points.shape[0]},)"
        )
    if not energies.requires_grad and points.requires_grad:
        raise MeasurementError(
            "the energy cannot be differentiated by its points: compute it from them "
            "with torch, without detach or no_grad"
        )
    return energies


def descend(
    energy: Energy, starts: Tensor, *, tol: float, max_steps: int
) -> tuple[Tensor, int]:
    """Return where Newton's method ends from each start, and the passes spent.

    Starts that do not arrive within the steps are left out.

    Args:
        energy: Points to energies.
        starts: Points on the sphere.
        tol: Size of the tangent gradient at which to stop.
        max_steps: Largest number of steps per start.
    """
    radius = starts.norm(dim=1).mean()
    moving, arrived, passes = starts, [starts[:0]], 0
    for _ in range(max_steps):
        here = landscape(energy, moving)
        passes += here.passes
        sizes = here.gradients.norm(dim=1)
        done = sizes <= tol
        arrived.append(moving[done])
        going = ~done & torch.isfinite(sizes)
        if not going.any():
            break
        moving = _stepped(moving[going], here, going, radius)
    return torch.cat(arrived), passes


def _stepped(points: Tensor, here: Landscape, going: Tensor, radius: Tensor) -> Tensor:
    """Take one step of at most the longest angle, back onto the sphere."""
    outward = points / radius
    # A one along the point makes the matrix regular there and leaves the step tangent.
    matrix = here.hessians[going] + outward[:, :, None] * outward[:, None, :]
    step = -torch.linalg.solve_ex(matrix, here.gradients[going]).result
    length = step.norm(dim=1, keepdim=True)
    step = step * (_LONGEST * radius / length.clamp_min(1e-290)).clamp_max(1.0)
    moved = points + step
    return radius * moved / moved.norm(dim=1, keepdim=True)

"""A search for critical points, its result, and signs that points are missing."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from scipy.spatial import KDTree

from theodolite.core import (
    Dims,
    NormMode,
    Reading,
    Scalar,
    Status,
    Stopwatch,
    headline,
    metadata_line,
)

from .newton import Distinct, Landscape


@dataclass(frozen=True, kw_only=True, eq=False)
class CriticalPoints(Reading):
    r"""Critical points of an energy on a sphere.

    Attributes:
        counts: Number of points of each index.
        total: Number of all points.
        missing: Zero where the search is complete, infinity where some are missing;
            the error of the counts.
        euler: $\sum (-1)^{index}$ over all points.
        characteristic: Value of this for all: 2 on spheres of even dimension, else 0.
        starts: Starts that arrived somewhere.
        lone: Points met once only: their share of the starts is about the chance that
            the next start finds a new one.
        energies: Energies of the points, ascending.
        energy_errors: What the residual leaves open of each, to first order.
        indices: Negative eigenvalues of the tangent Hessian at each.
        residuals: Size of the tangent gradient at each, over that at random points.
        distances: How far the true point is, to first order, in units of the radius.
        bends: Smallest magnitude of the tangent Hessian's eigenvalues at each.
        hits: Starts that ended at each.
        points: The points, one row each.
    """

    counts: Annotated[np.ndarray, Dims("index", error="missing")]
    total: Annotated[int, Dims(error="missing")]
    missing: Scalar
    euler: Annotated[int, Dims()]
    characteristic: Annotated[int, Dims()]
    starts: Annotated[int, Dims()]
    lone: Annotated[int, Dims()]
    energies: Annotated[np.ndarray, Dims("point", error="energy_errors")]
    energy_errors: Annotated[np.ndarray, Dims("point")]
    indices: Annotated[np.ndarray, Dims("point")]
    residuals: Annotated[np.ndarray, Dims("point")]
    distances: Annotated[np.ndarray, Dims("point")]
    bends: Annotated[np.ndarray, Dims("point")]
    hits: Annotated[np.ndarray, Dims("point")]
    points: np.ndarray

    @property
    def complete(self) -> bool:
        """Whether no sign of a missing point was found."""
        return self.missing == 0

    def below(self, energy: float) -> np.ndarray:
        """Return the number of points of each index, up to a given energy."""
        kept = self.indices[self.energies <= energy]
        return np.bincount(kept, minlength=self.counts.size)

    def summary_lines(self) -> list[str]:
        """Return counts by index, the test of completeness and the worst residual."""
        by_index: list[Any] = self.counts.tolist()
        worst = float(self.residuals.max()) if self.residuals.size else 0.0
        return [
            headline(self),
            f"  {self.total} points, by index {by_index}",
            f"  alternating sum {self.euler}, of all {self.characteristic}; "
            f"{self.lone} points met once in {self.starts} starts",
            f"  residuals up to {worst:.2g}",
            metadata_line(self),
        ]


# A Hessian's eigenvalue below this share of its largest has no certain sign.
_SINGULAR = 1e-9


@dataclass(frozen=True, kw_only=True)
class Search:
    """Critical points so far, with the landscape at each.

    Attributes:
        distinct: The points.
        here: Energies and derivatives at them.
        radius: Radius of the sphere.
        scale: Size of the gradient at random points.
        starts: Starts that arrived.
        apart: Distance below which two points are one.
        antipodal: Whether the negative of a point must be one.
        bound: Greatest number possible, if known.
    """

    distinct: Distinct
    here: Landscape
    radius: float
    scale: float
    starts: int
    apart: float
    antipodal: bool
    bound: int | None

    @property
    def dimension(self) -> int:
        """Dimension of the space around the sphere."""
        return self.distinct.points.shape[1]

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """Eigenvalues of the tangent Hessians, ascending, without the radial zero."""
        points = self.distinct.points / self.radius
        hessians = self.here.hessians.cpu().numpy()
        # Moved out of the way: the greatest by far, and the last.
        far = 10 * (np.abs(hessians).max(initial=0.0) * self.dimension + 1)
        lifted = hessians + far * points[:, :, None] * points[:, None, :]
        return np.linalg.eigvalsh(lifted)[:, :-1]

    @cached_property
    def indices(self) -> np.ndarray:
        """Negative eigenvalues at each point."""
        return (self.eigenvalues < 0).sum(1)

    @cached_property
    def bends(self) -> np.ndarray:
        """Smallest magnitude of an eigenvalue at each point."""
        return np.abs(self.eigenvalues).min(axis=1, initial=math.inf)

    @property
    def euler(self) -> int:
        """Alternating sum over indices."""
        return int(((-1) ** self.indices).sum())

    @property
    def characteristic(self) -> int:
        """Euler characteristic of the sphere."""
        return 2 if self.dimension % 2 else 0

    @property
    def lone(self) -> int:
        """Points met once only."""
        return int((self.distinct.hits == 1).sum())

    @property
    def complete(self) -> bool:
        """Whether no sign of a missing point was found."""
        if not len(self.indices) or self.euler != self.characteristic or self.lone:
            return False
        largest = np.abs(self.eigenvalues).max()
        if self.bends.min() <= _SINGULAR * largest:
            return False
        if self.bound is not None and len(self.indices) > self.bound:
            return False
        return not self.antipodal or self._paired()

    def _paired(self) -> bool:
        tree = KDTree(self.distinct.points)
        distance, _ = tree.query(-self.distinct.points)
        return bool((distance < self.apart).all())

    def reading(self, *, seed: int, watch: Stopwatch, passes: int) -> CriticalPoints:
        """Return the points, by rising energy."""
        energies = self.here.energies.cpu().numpy()
        order = np.argsort(energies, kind="stable")
        sizes = self.here.gradients.norm(dim=1).cpu().numpy()
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = np.where(sizes > 0, sizes / self.bends, 0.0)
        rounding = np.finfo(float).eps * np.abs(energies) * self.dimension
        status = Status.CONVERGED if self.complete else Status.INCOMPLETE
        return CriticalPoints(
            counts=np.bincount(self.indices, minlength=self.dimension),
            total=len(energies),
            missing=0.0 if self.complete else math.inf,
            euler=self.euler,
            characteristic=self.characteristic,
            starts=self.starts,
            lone=self.lone,
            energies=energies[order],
            energy_errors=(sizes * distances + rounding)[order],
            indices=self.indices[order],
            residuals=(sizes / self.scale)[order],
            distances=(distances / self.radius)[order],
            bends=self.bends[order],
            hits=self.distinct.hits[order],
            points=self.distinct.points[order],
            status=status if math.isfinite(self.scale) else Status.NONFINITE,
            norm_mode=NormMode.EVAL,
            seed=seed,
            cost=watch.read(passes),
            method="Newton from random starts",
        )

"""What was found so far, and whether anything speaks for what is missing."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree

from theodolite.core import NormMode, Status, Stopwatch
from theodolite.instruments.spheres.descents import Landscape
from theodolite.instruments.spheres.distinct import Distinct
from theodolite.instruments.spheres.found import CriticalPoints

# A Hessian's eigenvalue below this share of its largest has no certain sign.
_SINGULAR = 1e-9


@dataclass(frozen=True, kw_only=True)
class Search:
    """Points found, with the landscape at each.

    Attributes:
        found: The points.
        here: Energies and derivatives at them.
        radius: Of the sphere.
        scale: Size of the gradient at random points.
        starts: Starts that arrived.
        apart: Distance below which two points are one.
        antipodal: Whether the negative of a point must be one.
        bound: Greatest number possible, if known.
    """

    found: Distinct
    here: Landscape
    radius: float
    scale: float
    starts: int
    apart: float
    antipodal: bool
    bound: int | None

    @property
    def dimension(self) -> int:
        """Of the space around the sphere."""
        return self.found.points.shape[1]

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """Of the tangent Hessians, ascending; the zero along each point left out."""
        points = self.found.points / self.radius
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
        return int((self.found.hits == 1).sum())

    @property
    def complete(self) -> bool:
        """Whether nothing speaks for a missing point."""
        if not len(self.indices) or self.euler != self.characteristic or self.lone:
            return False
        largest = np.abs(self.eigenvalues).max()
        if self.bends.min() <= _SINGULAR * largest:
            return False
        if self.bound is not None and len(self.indices) > self.bound:
            return False
        return not self.antipodal or self._paired()

    def _paired(self) -> bool:
        tree = KDTree(self.found.points)
        distance, _ = tree.query(-self.found.points)
        return bool((distance < self.apart).all())

    def reading(self, *, seed: int, watch: Stopwatch, passes: int) -> CriticalPoints:
        """Return what was found, by rising energy."""
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
            hits=self.found.hits[order],
            points=self.found.points[order],
            status=status if math.isfinite(self.scale) else Status.NONFINITE,
            norm_mode=NormMode.EVAL,
            seed=seed,
            cost=watch.read(passes),
            method="Newton from random starts",
        )

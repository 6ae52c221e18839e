"""What a search for critical points comes as."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from theodolite.core import Reading, circumstances, headline


@dataclass(frozen=True, kw_only=True, eq=False)
class CriticalPoints(Reading):
    r"""Critical points of an energy on a sphere.

    Attributes:
        counts: How many there are of each index.
        total: How many there are.
        missing: Zero where the search is complete, infinity where some are missing;
            the error of the counts.
        euler: $\sum (-1)^{index}$ over what was found.
        characteristic: What it is for all: 2 on spheres of even dimension, else 0.
        starts: Starts that arrived somewhere.
        lone: Points met once only: their share of the starts is about the chance that
            the next start finds a new one.
        energies: Of the points, in rising order.
        energy_errors: What the residual leaves open of each, to first order.
        indices: Negative eigenvalues of the tangent Hessian at each.
        residuals: Size of the tangent gradient at each, over that at random points.
        distances: How far the true point is, to first order, in units of the radius.
        bends: Smallest magnitude of the tangent Hessian's eigenvalues at each.
        hits: Starts that ended at each.
        points: The points, a row each.
    """

    dims: ClassVar = {
        "counts": ("index",),
        "total": (),
        "missing": (),
        "euler": (),
        "characteristic": (),
        "starts": (),
        "lone": (),
        "energies": ("point",),
        "energy_errors": ("point",),
        "indices": ("point",),
        "residuals": ("point",),
        "distances": ("point",),
        "bends": ("point",),
        "hits": ("point",),
    }
    error_of: ClassVar = {
        "counts": "missing",
        "total": "missing",
        "energies": "energy_errors",
    }

    counts: np.ndarray
    total: int
    missing: float
    euler: int
    characteristic: int
    starts: int
    lone: int
    energies: np.ndarray
    energy_errors: np.ndarray
    indices: np.ndarray
    residuals: np.ndarray
    distances: np.ndarray
    bends: np.ndarray
    hits: np.ndarray
    points: np.ndarray

    @property
    def complete(self) -> bool:
        """Whether nothing speaks for a point that is missing."""
        return self.missing == 0

    def below(self, energy: float) -> np.ndarray:
        """Return how many there are of each index, of energies up to one."""
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
            circumstances(self),
        ]

"""What the singular values of a block come as, whichever way they were found."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from theodolite.core import Reading


@dataclass(frozen=True, kw_only=True, eq=False)
class SingularValues(Reading):
    r"""Distribution of the singular values of a block's Jacobian.

    Attributes:
        values: Singular values that are not zero, descending; by quadrature, its nodes.
        value_error: Bound on the rounding of each; by quadrature, the distance within
            which a true singular value lies.
        weights: Fraction of all ``size`` values that each stands for.
        points: Grid from 0 to the largest value.
        cdf: Fraction of singular values, zeros included, up to each point.
        cdf_error: Bound on the error of ``cdf``: what ``value_error`` moves across a
            point, the rank bound for per-sample blocks, and by quadrature a band that
            holds at all points at once with probability ``level``.
        bound: Largest ``cdf_error``.
        rank: Values above ``tolerance``, which are certainly not zero.
        rank_error: By how many the rank may be off, either way.
        rank_low: What the rank is at least.
        rank_high: What it is at most: values that are not told from zero may not be
            zero. Units that are off, as behind a ReLU, make zeros that are certain.
        tolerance: Size up to which a value is not told from zero.
        size: Number of singular values, zeros included.
        coupling_rank: Rank by which batch statistics couple the samples at most.
        level: Confidence of the errors; 1 for bounds without chance.
    """

    dims: ClassVar = {
        "values": ("position",),
        "value_error": ("position",),
        "weights": ("position",),
        "cdf": ("point",),
        "cdf_error": ("point",),
        "bound": (),
        "rank": (),
        "rank_error": (),
        "rank_low": (),
        "rank_high": (),
        "tolerance": (),
        "size": (),
        "coupling_rank": (),
    }
    error_of: ClassVar = {
        "values": "value_error",
        "cdf": "cdf_error",
        "rank": "rank_error",
    }

    values: np.ndarray
    value_error: np.ndarray
    weights: np.ndarray
    points: np.ndarray
    cdf: np.ndarray
    cdf_error: np.ndarray
    bound: float
    rank: int
    rank_error: int
    rank_low: int
    rank_high: int
    tolerance: float
    size: int
    coupling_rank: int
    level: float

    def coordinates(self) -> dict[str, list]:
        """Return positions from the top, and the grid."""
        return {
            "position": list(range(len(self.values))),
            "point": self.points.tolist(),
        }

    def summary_lines(self) -> list[str]:
        """Return what ``print`` shows: the distribution in a sentence first."""
        first, *rest = Reading.summary_lines(self)
        top = self.values[0] if len(self.values) else 0.0
        rank = f"{self.rank_low:,} to {self.rank_high:,}"
        if self.rank_low == self.rank_high:
            rank = f"{self.rank:,}"
        return [
            first,
            f"  {self.size:,} singular values up to {top:.4g}, rank {rank}",
            f"  distribution within {self.bound:.2g}",
            *rest,
        ]

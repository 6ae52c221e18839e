r"""Paths on the unit sphere that keep clear of other points.

A path is a minor arc of a great circle; where it would enter the cap around another
point it follows the cap's rim instead, the shorter way round. Every piece is an arc
of a circle, so lengths and points along it are exact.

Notation: $\theta$ angular radius of a cap, $2\sin(\theta/2)$ its chordal radius.
"""

from dataclasses import dataclass

import numpy as np

from theodolite.core import Numbers, as_numbers, as_whole, hold_numbers
from theodolite.theory.unit_points import as_between, check_norms, check_width

# The rim is walked this fraction of the radius outside, so that rounding cannot put a
# point inside the cap.
HAIR = 1e-9
_SMALL = 1e-9


@dataclass(frozen=True, eq=False)
class Arc:
    r"""Points $c + r(\cos\varphi\,u + \sin\varphi\,v)$, $0 \le \varphi \le$ angle."""

    centre: np.ndarray
    radius: float
    u: np.ndarray
    v: np.ndarray
    angle: float

    @property
    def length(self) -> float:
        """Length along the sphere."""
        return self.radius * self.angle

    def points(self, along: np.ndarray) -> np.ndarray:
        """Return the points at given lengths from the arc's start."""
        angle = (along / self.radius)[:, None]
        return self.centre + self.radius * (
            np.cos(angle) * self.u + np.sin(angle) * self.v
        )


@dataclass(frozen=True, eq=False)
class SpherePath:
    """A chain of arcs from one point of the sphere to another.

    Attributes:
        arcs: Its pieces, in order.
        start: First point, as given.
        end: Last point, as given.
        detours: How many caps it goes round.
    """

    arcs: tuple[Arc, ...]
    start: np.ndarray
    end: np.ndarray
    detours: int

    def __post_init__(self) -> None:
        hold_numbers(self, start=("width",))
        hold_numbers(self, end=self.start.shape)

    @property
    def length(self) -> float:
        """Length along the sphere."""
        return float(sum(arc.length for arc in self.arcs))

    def steps(self, count: int) -> np.ndarray:
        """Return ``count + 1`` points at equal lengths, both ends exact."""
        count = as_whole("count", count, 1)
        along = np.linspace(0.0, self.length, count + 1)
        ends = np.cumsum([arc.length for arc in self.arcs])
        piece = np.minimum(np.searchsorted(ends, along), len(self.arcs) - 1)
        found = np.empty((count + 1, self.start.size))
        for place, arc in enumerate(self.arcs):
            here = piece == place
            found[here] = arc.points(along[here] - (ends[place] - arc.length))
        found[0], found[-1] = self.start, self.end
        return found


def sphere_path(
    start: Numbers, end: Numbers, others: Numbers, radius: float
) -> SpherePath:
    r"""Shortest great arc between two unit vectors, round the caps of others.

    The rim of a cap of chordal radius $r$ is a circle of radius at most $r$, so each
    detour adds at most $\pi r$: with $m - 1$ others the length stays below
    $\pi(1 + r(m-1))$.

    Assumes: unit vectors in at least 3 dimensions, and caps that neither overlap nor
    hold the ends, as when all points are $2r$ apart.

    Args:
        start: Unit vector.
        end: Unit vector.
        others: Unit vectors to keep clear of, shape (k, d).
        radius: Chordal radius of the caps, below 1 where there are others.

    References:
        Li et al. (2016), Demystifying ResNet, lemma 2 and figure 10.

    Example:
        >>> x, y, z = np.eye(3)
        >>> round(sphere_path(x, y, z[None], 0.5).length, 10)
        1.5707963268
        >>> middle = (x + y) / np.sqrt(2)
        >>> sphere_path(x, y, middle[None], 0.3).detours
        1
    """
    start, end, others = _checked(start, end, others)
    # Without caps any radius will do: a lone sample may face its label at distance 2.
    radius = as_between("radius", radius, 1.0 if len(others) else np.inf)
    radius = radius * (1 + HAIR)
    cosine = 1 - radius**2 / 2
    across = _towards(start, end)
    whole = _angle(end, start, across)
    met = _caps_met(start, across, whole, others, cosine)
    great, place, arcs = np.zeros_like(start), 0.0, []
    for low, high, point in met:
        first, second = (
            np.cos(phi) * start + np.sin(phi) * across for phi in (low, high)
        )
        arcs.append(_great(great, start, across, place, low))
        arcs.append(_rim(point, cosine, first, second))
        place = high
    arcs.append(_great(great, start, across, place, whole))
    return SpherePath(tuple(arcs), start, end, len(met))


def _checked(
    start: Numbers, end: Numbers, others: Numbers
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start = as_numbers("start", start, "width")
    check_width(start.size)
    end = as_numbers("end", end, start.size)
    others = as_numbers("others", others, "points", start.size)
    check_norms("start and end", np.stack([start, end]))
    check_norms("others", others)
    return start, end, others


def _caps_met(
    start: np.ndarray,
    across: np.ndarray,
    whole: float,
    others: np.ndarray,
    cosine: float,
) -> list[tuple[float, float, np.ndarray]]:
    """Return the angles between which the arc is inside each cap that it meets."""
    found = []
    for point in others:
        reach = float(np.hypot(point @ start, point @ across))
        middle = float(np.arctan2(point @ across, point @ start))
        if reach > cosine and 0 < middle < whole:
            half = float(np.arccos(cosine / reach))
            found.append((middle - half, middle + half, point))
    return sorted(found, key=lambda item: item[0])


def _great(
    centre: np.ndarray, u: np.ndarray, v: np.ndarray, low: float, high: float
) -> Arc:
    turned = np.cos(low) * u + np.sin(low) * v
    return Arc(centre, 1.0, turned, np.cos(low) * v - np.sin(low) * u, high - low)


def _rim(point: np.ndarray, cosine: float, first: np.ndarray, last: np.ndarray) -> Arc:
    centre, radius = cosine * point, float(np.sqrt(1 - cosine**2))
    u, w = (first - centre) / radius, (last - centre) / radius
    v = _orthogonal(w, u, point)
    # Seen from the rim's centre the turn is at most half of the circle.
    return Arc(centre, radius, u, v, _angle(w, u, v))


def _towards(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the unit tangent at the start of the shortest arc to the end."""
    return _orthogonal(end, start)


def _angle(vector: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    """Return the angle from u towards v, in [0, π] also where rounding turns v."""
    return float(np.arctan2(abs(vector @ v), vector @ u))


def _orthogonal(vector: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Return the unit part of a vector orthogonal to orthonormal others.

    Where nothing is left, as towards an antipode, the axis that is furthest from the
    others stands in.
    """
    rest = _strip(vector, others)
    if np.linalg.norm(rest) < _SMALL:
        axes = np.stack([_strip(axis, others) for axis in np.eye(vector.size)])
        rest = axes[np.argmax(np.linalg.norm(axes, axis=1))]
    # Twice is enough: once more takes away what cancellation left.
    rest = _strip(rest / np.linalg.norm(rest), others)
    return rest / np.linalg.norm(rest)


def _strip(vector: np.ndarray, others: tuple[np.ndarray, ...]) -> np.ndarray:
    for other in others:
        vector = vector - (vector @ other) * other
    return vector

r"""Points on the unit sphere, and paths that avoid other points.

A path is a minor arc of a great circle; where it would enter the cap around another
point it follows the cap's rim instead, the shorter way round. Every piece is an arc
of a circle, so lengths and points along it are exact.

Notation: $\theta$ angular radius of a cap, $2\sin(\theta/2)$ its chordal radius.
"""

from dataclasses import dataclass

import numpy as np

from theodolite.core import ConfigError, Numbers, as_integer, as_numbers, stream

from .linear_network import paired_samples

# Tolerance of unit norms, and the least distance of two distinct points.
_UNIT = 1e-9
# Candidates tried for a label that has to move.
_CANDIDATES = 64
# A path follows the rim this fraction of the radius outside the cap, so that rounding
# cannot put a point inside it.
HAIR = 1e-9
_SMALL = 1e-9


def minimum_distance(points: Numbers) -> float:
    r"""Least distance between two rows; infinite for one row.

    References:
        Li et al. (2016), Demystifying ResNet, definition 3.

    Example:
        >>> minimum_distance(np.eye(3)).__round__(6)
        1.414214
    """
    points = as_numbers("points", points, "points", "width")
    least = np.inf
    for place in range(1, len(points)):
        gaps = np.linalg.norm(points[:place] - points[place], axis=1)
        least = min(least, float(gaps.min()))
    return float(least)


def separated_labels(
    x: np.ndarray, y: np.ndarray, distance: float, *, seed: int = 0
) -> np.ndarray:
    r"""Return labels of unit norm, moved where they coincide with another point.

    A label that equals a sample or an earlier label moves by a chord of length
    ``distance``, in (0, 1), in the one of 64 random directions that ends furthest from
    all other points.

    References:
        Li et al. (2016), Demystifying ResNet, after assumption 2.

    Example:
        >>> x, y = np.eye(3)[:2], np.eye(3)[[2, 2]]
        >>> minimum_distance(separated_labels(x, y, 0.2)).__round__(10)
        0.2
    """
    distance = as_between("perturb", distance, 1.0)
    rng, moved = stream(seed, "perturb"), y.copy()
    for place in range(len(y)):
        known = np.concatenate([x, moved[:place]])
        if np.linalg.norm(known - y[place], axis=1).min() > _UNIT:
            continue
        everyone = np.concatenate([known, y[place:]])
        side = rng.normal(size=(_CANDIDATES, y.shape[1]))
        side -= (side @ y[place])[:, None] * y[place]
        side /= np.linalg.norm(side, axis=1, keepdims=True)
        angle = 2 * np.arcsin(distance / 2)
        tried = np.cos(angle) * y[place] + np.sin(angle) * side
        tried /= np.linalg.norm(tried, axis=1, keepdims=True)
        gaps = np.linalg.norm(tried[:, None] - everyone, axis=2).min(axis=1)
        moved[place] = tried[np.argmax(gaps)]
    return moved


def check_unit_points(x: Numbers, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Return samples and labels as arrays, or raise where no path can exist."""
    x, y = paired_samples(x, y)
    _check_norms("inputs", x)
    _check_norms("labels", y)
    _check_width(x.shape[1])
    return x, y


def _check_width(width: int) -> None:
    if width < 3:
        raise ConfigError(
            f"data of width {width}: on a circle no sample can pass another; "
            "append zeros to reach at least 3 dimensions"
        )


def _check_norms(name: str, points: np.ndarray) -> None:
    norms = np.linalg.norm(points, axis=1)
    if norms.size and np.abs(norms - 1).max() > _UNIT:
        raise ConfigError(
            f"{name} have norms from {norms.min():.4g} to {norms.max():.4g}, and "
            "the construction wants 1: divide each row by its norm"
        )


def as_between(name: str, value: object, high: float) -> float:
    """Return a number strictly between 0 and a limit as a float, or raise."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if isinstance(value, bool) or not number or not 0 < value < high:
        raise ConfigError(f"{name} is {value!r}: pass a number in (0, {high:g})")
    return float(value)


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

    @property
    def length(self) -> float:
        """Length along the sphere."""
        return float(sum(arc.length for arc in self.arcs))

    def steps(self, count: int) -> np.ndarray:
        """Return ``count + 1`` points at equal lengths, both ends exact."""
        count = as_integer("count", count, 1)
        along = np.linspace(0.0, self.length, count + 1)
        ends = np.cumsum([arc.length for arc in self.arcs])
        piece = np.minimum(np.searchsorted(ends, along), len(self.arcs) - 1)
        points = np.empty((count + 1, self.start.size))
        for place, arc in enumerate(self.arcs):
            here = piece == place
            points[here] = arc.points(along[here] - (ends[place] - arc.length))
        points[0], points[-1] = self.start, self.end
        return points


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
        others: Unit vectors to avoid, shape (k, d).
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
    start = as_numbers("start", start, "width")
    _check_width(start.size)
    end = as_numbers("end", end, start.size)
    others = as_numbers("others", others, "points", start.size)
    _check_norms("start and end", np.stack([start, end]))
    _check_norms("others", others)
    # Without caps any radius is fine: one sample may be at distance 2 of its label.
    radius = as_between("radius", radius, 1.0 if len(others) else np.inf)
    radius = radius * (1 + HAIR)
    cosine = 1 - radius**2 / 2
    across = _orthogonal(end, start)  # tangent at the start towards the end
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


def _caps_met(
    start: np.ndarray,
    across: np.ndarray,
    whole: float,
    others: np.ndarray,
    cosine: float,
) -> list[tuple[float, float, np.ndarray]]:
    """Return the angles between which the arc is inside each cap that it meets."""
    caps = []
    for point in others:
        reach = float(np.hypot(point @ start, point @ across))
        middle = float(np.arctan2(point @ across, point @ start))
        if reach > cosine and 0 < middle < whole:
            half = float(np.arccos(cosine / reach))
            caps.append((middle - half, middle + half, point))
    return sorted(caps, key=lambda item: item[0])


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


def _angle(vector: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    """Return the angle from u towards v, in [0, π] also where rounding turns v."""
    return float(np.arctan2(abs(vector @ v), vector @ u))


def _orthogonal(vector: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Return the unit part of a vector orthogonal to orthonormal others.

    Where nothing is left, as towards an antipode, the axis furthest from the others
    is used.
    """
    rest = _strip(vector, others)
    if np.linalg.norm(rest) < _SMALL:
        axes = np.stack([_strip(axis, others) for axis in np.eye(vector.size)])
        rest = axes[np.argmax(np.linalg.norm(axes, axis=1))]
    # Twice is enough: the second time removes the rounding of the first.
    rest = _strip(rest / np.linalg.norm(rest), others)
    return rest / np.linalg.norm(rest)


def _strip(vector: np.ndarray, others: tuple[np.ndarray, ...]) -> np.ndarray:
    for other in others:
        vector = vector - (vector @ other) * other
    return vector

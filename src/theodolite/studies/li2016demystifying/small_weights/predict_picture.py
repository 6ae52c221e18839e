"""The picture of lemma 2 as rows: a sphere seen from outside, its caps and paths."""

import numpy as np

from theodolite.core import Row
from theodolite.studies.li2016demystifying.small_weights.predict_sphere import points
from theodolite.theory import interpolating_network, sphere_path

# Units a sample in the picture; more would run the dots together.
STEPS = 24
# Direction from which the sphere is seen: degrees of longitude and latitude.
VIEW = (0.0, 14.0)


def picture() -> list[Row]:
    """Rows of the first sample's path, the straight arc, caps and points."""
    x, y = points("detour", 0)
    network = interpolating_network(x, y, STEPS * len(x))
    cap = network.rho / 2
    straight = sphere_path(x[0], y[0], x[:0], cap)
    walked = network.paths[0]
    curves = [
        ("path", 0, walked.steps(240)),
        ("steps", 0, walked.steps(STEPS)),
        ("straight", 0, straight.steps(120)),
        *(("cap", place, _rim(x[place], cap)) for place in range(1, len(x))),
        *(("sample", place, point[None]) for place, point in enumerate(x)),
        ("label", 0, y[:1]),
    ]
    angle = np.linspace(0, 2 * np.pi, 200)
    outline = [
        _row("globe", 0, step, right=np.cos(a), up=np.sin(a), toward=0.0)
        for step, a in enumerate(angle)
    ]
    return [*outline, *(row for curve in curves for row in _seen(*curve))]


def straight_least(x: np.ndarray, y: np.ndarray) -> float:
    """Return how near the straight arcs come to other points, walked in turn."""
    stand, least = x.copy(), np.inf
    for place, label in enumerate(y):
        others = np.delete(stand, place, axis=0)
        way = sphere_path(x[place], label, x[:0], 0.1).steps(400)
        gaps = np.linalg.norm(way[:, None] - others, axis=2)
        least = min(least, float(gaps.min()))
        stand[place] = label
    return least


def _rim(point: np.ndarray, chord: float) -> np.ndarray:
    """Return the rim of a cap in three dimensions, closed."""
    _, _, basis = np.linalg.svd(point[None])
    angle = np.linspace(0, 2 * np.pi, 97)[:, None]
    ring = np.cos(angle) * basis[1] + np.sin(angle) * basis[2]
    cosine = 1 - chord**2 / 2
    return cosine * point + np.sqrt(1 - cosine**2) * ring


def _seen(name: str, place: int, curve: np.ndarray) -> list[Row]:
    """Return a curve as rows in the plane of the picture, with its depth."""
    lon, lat = np.radians(VIEW)
    toward = np.array(
        [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
    )
    right = np.array([-np.sin(lon), np.cos(lon), 0.0])
    up = np.cross(toward, right)
    return [
        _row(name, place, step, right=p @ right, up=p @ up, toward=p @ toward)
        for step, p in enumerate(curve)
    ]


def _row(
    name: str, place: int, step: int, *, right: float, up: float, toward: float
) -> Row:
    return {
        "quantity": "picture",
        "curve": name,
        "sample": place,
        "step": step,
        "right": float(right),
        "up": float(up),
        "value": float(toward),
        "error": 1e-15,
    }

"""Points on the sphere that theorem 1 is tried on."""

import numpy as np

from theodolite.core import stream
from theodolite.theory import minimum_distance

# Degrees of longitude and latitude: the first sample has two others on its way.
_DETOUR_X = ((-65, 0), (-25, 4), (20, -7), (5, 42))
_DETOUR_Y = ((65, 0), (-160, 35), (160, -40), (120, 30))


def points(case: str, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples and labels of a case: ``basis``, ``detour`` or ``m,d``."""
    if case == "basis":
        x = np.array([[1.0, 1.0, 1.0], [0.6, 0.0, 0.8], [-0.6, 0.8, 0.0]])
        return unit_rows(x), np.eye(3)
    if case == "detour":
        return on_globe(_DETOUR_X), on_globe(_DETOUR_Y)
    m, d = (int(part) for part in case.split(","))
    rng = stream(trial, "sphere", m, d)
    while True:
        x, y = (unit_rows(rng.normal(size=(m, d))) for _ in range(2))
        if minimum_distance(np.concatenate([x, y])) > 0.05:
            return x, y


def close_pair(rho: float, length: float, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two samples, a distance apart, and labels on arcs of a given length."""
    turn, _ = np.linalg.qr(stream(trial, "close_pair").normal(size=(3, 3)))
    a, b, c = turn.T
    angle = 2 * np.arcsin(rho / 2)
    near = np.cos(angle) * a + np.sin(angle) * c
    x = np.stack([a, near])
    y = np.stack([np.cos(length) * a + np.sin(length) * b, -c])
    return unit_rows(x), unit_rows(y)


def on_globe(places: tuple[tuple[float, float], ...]) -> np.ndarray:
    """Return unit vectors at degrees of longitude and latitude."""
    lon, lat = np.radians(np.array(places, dtype=float)).T
    found = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
    return unit_rows(np.stack(found, axis=1))


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Divide each row by its norm."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)

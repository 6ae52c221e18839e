"""Bounds, limits and lengths of the paths, and the picture of lemma 2."""

import numpy as np

from theodolite import theory
from theodolite.core import Row, Rows, named_rows, stream

from ..shared.problems import closed
from .config import Config, cells

# Degrees of longitude and latitude: two others lie on the path of the first sample.
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
        if theory.minimum_distance(np.concatenate([x, y])) > 0.05:
            return x, y


def close_pair(rho: float, length: float, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two samples at distance ``rho``, and labels on arcs of a given length."""
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
    axes = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
    return unit_rows(np.stack(axes, axis=1))


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Divide each row by its norm."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# Units per sample in the picture; with more the dots would overlap.
STEPS = 24
# Direction from which the sphere is seen: degrees of longitude and latitude.
VIEW = (0.0, 14.0)


def picture() -> list[Row]:
    """Return rows of the first sample's path, the straight arc, caps and points."""
    x, y = points("detour", 0)
    network = theory.interpolating_network(x, y, STEPS * len(x))
    cap = network.rho / 2
    straight = theory.sphere_path(x[0], y[0], x[:0], cap)
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
    globe = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    outline = _rows("globe", 0, globe)
    return [*outline, *(row for curve in curves for row in _seen(*curve))]


def straight_least(x: np.ndarray, y: np.ndarray) -> float:
    """Return the smallest distance of the straight arcs to the other points."""
    stand, least = x.copy(), np.inf
    for place, label in enumerate(y):
        others = np.delete(stand, place, axis=0)
        way = theory.sphere_path(x[place], label, x[:0], 0.1).steps(400)
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
    seen = [(p @ right, p @ up, p @ toward) for p in curve]
    return _rows(name, place, np.array(seen))


def _rows(curve: str, sample: int, places: np.ndarray) -> list[Row]:
    """Return places (right, up, toward the eye) as rows of a curve."""
    of = {"curve": curve, "sample": sample}
    rows: list[Row] = []
    for step, (right, up, toward) in enumerate(places.tolist()):
        rows += named_rows(
            {"picture": toward}, 1e-15, **of, step=step, right=right, up=up
        )
    return rows


# Samples and smallest distances at which orders of magnitude can be compared.
ORDERS = ((10, 0.1), (100, 0.03), (1000, 0.01), (10000, 0.001))


def predict(config: Config) -> Rows:
    """Return bounds, limits and lengths of every case, and lemma 2's picture."""
    rows: list[Row] = []
    for cell in cells(config):
        if cell["task"] == "walk":
            rows += _walk(config, cell["case"], cell["trial"])
    return Rows([*rows, *_orders(), *_circle(), *picture()])


def _walk(config: Config, case: str, trial: int) -> list[Row]:
    x, y = points(case, trial)
    m = len(x)
    network = theory.interpolating_network(x, y, m)
    rho, longest = network.rho, float(network.lengths.max())
    numbers = {
        "rho": rho,
        "limit": np.sqrt(8 * m * longest) / rho,
        "length_share": longest / (np.pi * (1 + rho * (m - 1) / 2)),
        "detours": sum(path.detours for path in network.paths),
        "straight": straight_least(x, y) / rho,
    }
    rows = closed(numbers, case=case, trial=trial)
    for steps in config.steps:
        bound = theory.weight_norm_bound(rho=rho, samples=m, units=m * steps)
        labels = {"units": m * steps, "samples": m, "case": case, "trial": trial}
        rows += closed({"bound": bound}, **labels)
    return rows


def _orders() -> list[Row]:
    """Return the lemmas' bound over the printed and over the corrected one."""
    rows: list[Row] = []
    for m, rho in ORDERS:
        bound = theory.weight_norm_bound(rho=rho, samples=m, units=m)
        root, bracket = np.sqrt(1 / rho), m + 1 / rho
        numbers = {
            "over_printed": bound / (root * bracket),
            "over_corrected": bound / (root * np.sqrt(bracket)),
        }
        rows += closed(numbers, bracket=bracket)
    return rows


def _circle() -> list[Row]:
    """Return how near both paths to an antipode come to other points on a circle."""
    angle = np.linspace(0, np.pi, 2001)
    ways = [np.stack([np.cos(angle), s * np.sin(angle)], axis=1) for s in (1, -1)]
    bars = np.array([[0.0, 1.0], [0.0, -1.0]])
    least = [np.linalg.norm(w[:, None] - bars, axis=2).min() for w in ways]
    return [{"quantity": "circle", "value": float(max(least)), "error": 1e-12}]

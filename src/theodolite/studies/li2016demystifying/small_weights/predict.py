"""Bounds, limits and lengths of the paths, and the picture of lemma 2."""

import numpy as np

from theodolite.core import Row, Rows
from theodolite.studies.li2016demystifying.shared.closed_forms import closed
from theodolite.studies.li2016demystifying.small_weights.config import Config, cells
from theodolite.studies.li2016demystifying.small_weights.predict_picture import (
    picture,
    straight_least,
)
from theodolite.studies.li2016demystifying.small_weights.predict_sphere import points
from theodolite.theory import interpolating_network, weight_norm_bound

# Samples and least distances at which orders of magnitude are told apart.
ORDERS = ((10, 0.1), (100, 0.03), (1000, 0.01), (10000, 0.001))


def predict(config: Config) -> Rows:
    """Bounds, limits and lengths of every case, and the picture of lemma 2."""
    rows: list[Row] = []
    for cell in cells(config):
        if cell["task"] == "walk":
            rows += _walk(config, cell["case"], cell["trial"])
    return Rows([*rows, *_orders(), *_circle(), *picture()])


def _walk(config: Config, case: str, trial: int) -> list[Row]:
    x, y = points(case, trial)
    m = len(x)
    network = interpolating_network(x, y, m)
    rho, longest = network.rho, float(network.lengths.max())
    found = {
        "rho": rho,
        "limit": np.sqrt(8 * m * longest) / rho,
        "length_share": longest / (np.pi * (1 + rho * (m - 1) / 2)),
        "detours": sum(path.detours for path in network.paths),
        "straight": straight_least(x, y) / rho,
    }
    rows = closed(found, case=case, trial=trial)
    for steps in config.steps:
        bound = weight_norm_bound(rho=rho, samples=m, units=m * steps)
        labels = {"units": m * steps, "samples": m, "case": case, "trial": trial}
        rows += closed({"bound": bound}, **labels)
    return rows


def _orders() -> list[Row]:
    """What the lemmas give, over what is printed and over what is right."""
    rows: list[Row] = []
    for m, rho in ORDERS:
        bound = weight_norm_bound(rho=rho, samples=m, units=m)
        root, bracket = np.sqrt(1 / rho), m + 1 / rho
        found = {
            "over_printed": bound / (root * bracket),
            "over_corrected": bound / (root * np.sqrt(bracket)),
        }
        rows += closed(found, bracket=bracket)
    return rows


def _circle() -> list[Row]:
    """On a circle both ways from a point to its antipode are barred."""
    angle = np.linspace(0, np.pi, 2001)
    ways = [np.stack([np.cos(angle), s * np.sin(angle)], axis=1) for s in (1, -1)]
    bars = np.array([[0.0, 1.0], [0.0, -1.0]])
    least = [np.linalg.norm(w[:, None] - bars, axis=2).min() for w in ways]
    return [{"quantity": "circle", "value": float(max(least)), "error": 1e-12}]

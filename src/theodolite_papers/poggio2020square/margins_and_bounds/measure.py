"""Margins found by search, complexities of scaled networks, and trained classifiers."""

import itertools
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize

from theodolite.core import Row, Rows, named_rows, stream

from ..shared.split_classes import two_digits
from ..shared.stacked_networks import descend, draw, forward
from .config import Config, plane, separable

GRID = 4000  # directions of the plane
RATES = (3e-3, 1e-4)


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one part."""
    if cell["part"] == "networks":
        return networks(config)
    if cell["part"] == "draws":
        return Rows(row for draw in range(config.draws) for row in _draw(config, draw))
    make = _linear if cell["part"] == "linear" else _signs
    return Rows(row for trial in config.seeds for row in make(config, trial))


def _linear(config: Config, trial: int) -> list[Row]:
    """Search for the widest margin, and for the shortest of both kinds of solution."""
    x, y = separable(config, trial)
    signed = y[:, None] * x
    width = x.shape[1]
    start = np.append(np.linalg.lstsq(signed, np.ones(len(x)), rcond=None)[0], 0.0)
    start[:-1] /= np.linalg.norm(start[:-1])
    start[-1] = (signed @ start[:-1]).min()
    widest = minimize(
        lambda p: -p[-1],
        start,
        jac=lambda p: -np.eye(width + 1)[-1],
        constraints=[
            {"type": "ineq", "fun": lambda p: signed @ p[:-1] - p[-1]},
            {"type": "ineq", "fun": lambda p: 1 - p[:-1] @ p[:-1]},
        ],
        tol=1e-12,
        options={"maxiter": 500},
    )
    direction = widest.x[:-1] / np.linalg.norm(widest.x[:-1])
    margins = signed @ direction
    shortest = direction / margins.min()
    meeting = np.linalg.lstsq(x, y, rcond=None)[0]
    numbers = {
        "widest_margin": margins.min(),
        "shortest_norm": np.linalg.norm(shortest),
        "interpolating_norm": np.linalg.norm(meeting),
        "excess_norm": np.linalg.norm(meeting) - np.linalg.norm(shortest),
        "largest_output": (signed @ shortest).max(),
        "least_output": (signed @ shortest).min(),
    }
    return named_rows(numbers, 1e-6, trial=trial)


def _signs(config: Config, trial: int) -> list[Row]:
    """Return the Rademacher complexity of networks of one norm, over all signs."""
    x = plane(config, trial)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(x))))
    turns = np.linspace(0, 2 * np.pi, GRID, endpoint=False)
    directions = np.stack([np.cos(turns), np.sin(turns)])
    lost = float(np.linalg.norm(x, axis=1).sum()) * np.pi / GRID / len(x)
    rows: list[Row] = []
    for norm in config.norms:
        # Two layers that share the norm: both are scaled by its root.
        units = np.maximum(x @ (np.sqrt(norm) * directions), 0)
        outputs = np.sqrt(norm) * units
        value = np.abs(signs @ outputs).max(axis=1).mean() / len(x)
        rows.append(
            {"quantity": "complexity", "norm": norm, "trial": trial,
             "value": float(value), "error": norm * lost}
        )  # fmt: skip
    return rows


def _draw(config: Config, place: int) -> list[Row]:
    """Return the largest deviation of one draw, beside its complexity.

    Inputs are uniform on the circle and labels are fair coins. Networks of two layers
    and norm ``WIDEST`` are searched for the largest expected less empirical ramp loss
    of margin 1, over directions of one unit and the outputs' size.
    """
    rng = stream(config.seed, "draws of the circle", place)
    angles = rng.uniform(0, 2 * np.pi, config.drawn)
    labels = rng.choice([-1.0, 1.0], size=config.drawn)
    turns = np.linspace(0, 2 * np.pi, 360, endpoint=False)
    units = np.maximum(np.cos(angles[:, None] - turns), 0)
    expected_of = np.maximum(np.cos(turns), 0)  # the same for every direction
    most = 0.0
    for size in WIDEST * np.linspace(0.1, 1.0, 10):
        for sign in (-1.0, 1.0):
            seen = np.clip(1 - sign * size * labels[:, None] * units, 0, 1).mean(axis=0)
            known = [np.clip(1 - s * size * expected_of, 0, 1).mean() for s in (-1, 1)]
            most = max(most, float(np.mean(known) - seen.min()))
    coins = rng.choice([-1.0, 1.0], size=(200, config.drawn))
    complexity = WIDEST * np.abs(coins @ units).max(axis=1).mean() / config.drawn
    spare = 3 * np.sqrt(np.log(2 / config.delta) / (2 * config.drawn))
    numbers = {
        "deviation": most,
        "uniform_bound": 2 * complexity + spare,
        "share_of_bound": most / (2 * complexity + spare),
        "share_of_complexity": most / complexity,
    }
    return [
        {"quantity": k, "trial": place, "value": float(v), "error": 1e-3}
        for k, v in numbers.items()
    ]


WIDEST = 3.0  # norm of the networks that are searched
EPS = 1e-12
# Counts, and differences of numbers that are cut off at 0 and 1: no rounding.
COUNTED = ("held_error", "ramp_least_excess")


@lru_cache(maxsize=1)  # the bound uses the same networks
def networks(config: Config) -> Rows:
    """Train classifiers at every decay and read outputs on both sets."""
    import torch

    seen, held = two_digits(config.samples), two_digits(10_000, split="test")
    sets = {
        name: (torch.tensor(part.inputs), part.labels)
        for name, part in (("seen", seen), ("held", held))
    }
    rows: list[Row] = []
    for decay in config.decays:
        nets = draw(config.seeds, config.sizes, relu=True)
        x = sets["seen"][0]
        descend(
            nets,
            x,
            torch.tensor(seen.labels),
            decay=decay,
            steps=config.steps,
            rates=RATES,
        )
        layers = nets.directions()
        outputs = {
            name: forward(layers, inputs, relu=True)[-1].detach().numpy() * labels
            for name, (inputs, labels) in sets.items()
        }
        scales = nets.scale.detach().numpy()
        for place, trial in enumerate(config.seeds):
            numbers = _network(
                float(scales[place]), {k: v[place] for k, v in outputs.items()}
            )
            rows += [
                {"quantity": k, "decay": decay, "trial": trial, "value": v,
                 "error": 0.0 if k in COUNTED else EPS}
                for k, v in numbers.items()
            ]  # fmt: skip
    return Rows(rows)


def _network(scale: float, margins: dict[str, np.ndarray]) -> dict[str, float]:
    """Return norm, errors and ramp losses of one network at margin 1 of ρf."""
    seen, held = abs(scale) * margins["seen"], abs(scale) * margins["held"]
    sign = np.sign(scale)
    ramp = np.clip(1 - sign * seen, 0, 1)
    wrong = (sign * seen <= 0).astype(float)
    errors = int((sign * held <= 0).sum())
    return {
        "scale": abs(scale),
        "mean_margin": float(np.mean(sign * margins["seen"])),
        "ramp": float(ramp.mean()),
        "ramp_least_excess": float((ramp - wrong).min()),
        "held_error": errors / len(held),
    }

"""Smoothness and the Polyak–Łojasiewicz inequality on functions written down."""

from itertools import pairwise

import numpy as np

from theodolite.core import Row, named_rows, stream

from .config import Config, quadratic

TINY = 1e-12


def quadratics(config: Config) -> list[Row]:
    """Return rows of descents, of matrix norms, and of a function not convex."""
    rows = _wavy()
    for trial in config.seeds:
        rows += _descent(config, trial)
        rows += _norms(config, trial)
    return rows


def _descent(config: Config, trial: int) -> list[Row]:
    """Descend on a quadratic, and note the worst factor on the loss in one step."""
    curvatures, step, theta = quadratic(config, trial)
    losses = []
    for _ in range(config.steps):
        losses.append(float(curvatures @ theta**2) / 2)
        theta = theta - step * curvatures * theta
    kept = [b / a for a, b in pairwise(losses) if a > 1e-250]
    return named_rows({"rate": max(kept)}, TINY, trial=trial)


def _norms(config: Config, trial: int) -> list[Row]:
    """Stretch of a quadratic's gradient, over two norms of its Hessian."""
    rng, size = stream(config.seed, "norms", trial), 2 + trial % 4
    ones = np.ones((size, size))
    drawn = rng.normal(size=(size, size))
    rows: list[Row] = []
    for name, matrix in (("ones", ones), ("random", drawn + drawn.T)):
        ends = rng.normal(size=(2, size, 400))
        ends[0, :, 0], ends[1, :, 0] = 1.0, 0.0
        away = ends[0] - ends[1]
        moved = np.linalg.norm(matrix @ away, axis=0) / np.linalg.norm(away, axis=0)
        found = {
            "stretch_over_entry": moved.max() / np.abs(matrix).max(),
            "stretch_over_operator": moved.max() / np.linalg.norm(matrix, 2),
        }
        rows += named_rows(found, TINY, trial=trial, matrix=name)
    return rows


def _wavy() -> list[Row]:
    """Read x² + 3 sin² x on a fine grid around its minimum, where it is zero."""
    x = np.linspace(-20, 20, 400_000)  # without zero itself
    value = x**2 + 3 * np.sin(x) ** 2
    slope = 2 * x + 3 * np.sin(2 * x)
    curvature = 2 + 6 * np.cos(2 * x)
    found = {"wavy_ratio": (slope**2 / value).min(), "wavy_curvature": curvature.min()}
    return named_rows(found, 1e-4)

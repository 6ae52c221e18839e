"""Widest margins by duality, exact complexities, and bounds on them."""

import numpy as np

from theodolite import theory
from theodolite.core import Row, Rows, named_rows

from .config import Config, plane, separable


def predict(config: Config) -> Rows:
    """Return norms, margins and complexities of every trial."""
    rows: list[Row] = []
    for trial in config.seeds:
        x, y = separable(config, trial)
        shortest = float(np.linalg.norm(theory.least_norm_classifier(x, y)))
        exact = theory.two_layer_complexity(plane(config, trial))
        numbers = {
            "widest_margin": 1 / shortest,
            "shortest_norm": shortest,
            "interpolating_norm": float(np.linalg.norm(np.linalg.pinv(x) @ y)),
            "complexity_bound": theory.frobenius_complexity(plane(config, trial), 2),
        }
        rows += named_rows(numbers, 1e-9, trial=trial)
        rows += [
            {"quantity": "complexity", "norm": norm, "trial": trial,
             "value": norm * exact, "error": 1e-12}
            for norm in config.norms
        ]  # fmt: skip
    return Rows(rows)

"""Effective depth under the law of equation 16, by its scale."""

import numpy as np

from theodolite.core import Row, Rows
from theodolite.theory import path_length_moments

from .config import Config


def predict(config: Config) -> Rows:
    """Return the mean share of branches on a grid of scales, and parameter counts."""
    units = {depth - 1 for depth in config.depths}
    units |= {(depth - 2) // 2 for depth in config.image_depths}
    rows: list[Row] = []
    for count in sorted(units):
        for beta in np.geomspace(1e-3, 1e2, 121):
            mean = path_length_moments(count + 1, float(beta)).mean
            rows.append(
                {
                    "quantity": "law_depth",
                    "units": count,
                    "beta": float(beta),
                    "value": (mean - 1) / count,
                    "error": 1e-12,
                }
            )
    return Rows(rows)

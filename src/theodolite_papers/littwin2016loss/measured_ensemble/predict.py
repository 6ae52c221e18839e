"""Eq 16 for the measured networks, and what independent paths would give."""

import math

import numpy as np

from theodolite.core import Row, Rows, named_rows
from theodolite.theory import path_weights

from ..shared.rows import EPS, by_length
from .config import RHO, SCALES, Config


def predict(config: Config) -> Rows:
    r"""Return moments of path lengths under $\epsilon_r^2$.

    With $\Lambda = n$ its $\beta$ is $\rho\sqrt{n}\,C$ at any width.
    """
    rows: list[Row] = []
    for scale, second in SCALES.items():
        beta = RHO * math.sqrt(second)
        rows += named_rows({"beta": beta}, EPS, scale=scale)
        for depth in config.depths:
            weights = path_weights(depth, beta) ** 2
            labels = {"scale": scale, "depth": depth}
            rows += named_rows(moments(weights), 1e-12, **labels)
            rows += by_length("share", weights, 1e-13, **labels)
    return Rows(rows)


def moments(shares: np.ndarray) -> dict[str, float]:
    """Return mean, variance and mode of path lengths, which start at 1."""
    lengths = np.arange(1, len(shares) + 1)
    mean = float(shares @ lengths)
    return {
        "length": mean,
        "variance": float(shares @ (lengths - mean) ** 2),
        "peak": float(lengths[shares.argmax()]),
    }

"""Closed forms of the forces on scales and norm, for every random loss."""

import numpy as np

from theodolite.core import Row, Rows, named_rows
from theodolite.theory import TwoDegreeLoss, least_norm_force

from .config import KINDS, Config, instance

EPS = 1e-14


def predict(config: Config) -> Rows:
    """Return every force by its correct formula and by the paper's printed one."""
    rows: list[Row] = []
    for m, p in config.degrees:
        for kind in KINDS:
            for trial in config.seeds:
                labels = {"kind": kind, "shallow": m, "deep": p, "trial": trial}
                forces = _forces(config, kind, m, p, trial)
                rows += named_rows(forces, **labels)
        rows += _envelope(m, p)
    return Rows(rows)


def _envelope(m: int, p: int) -> list[Row]:
    """Return the least force on the norm over angles, by the gradients' ratio."""
    return [
        {
            "quantity": "envelope",
            "shallow": m,
            "deep": p,
            "ratio": float(ratio),
            "value": least_norm_force(1.0, float(ratio), shallow=m, deep=p)
            / (m + p * float(ratio) ** 2),
            "error": EPS,
        }
        for ratio in np.geomspace(0.05, 20, 61)
    ]


def _forces(
    config: Config, kind: str, m: int, p: int, trial: int
) -> dict[str, tuple[float, float]]:
    drawn = instance(config, kind, m, p, trial)
    loss = TwoDegreeLoss(shallow=drawn.shallow, deep=drawn.deep, scales=drawn.scales)
    parts = loss.parts(drawn.weights)
    low, high, g = parts.shallow_gradient, parts.deep_gradient, parts.gradient
    size = np.linalg.norm(drawn.weights) / np.sqrt(config.weights)  # the paper's C
    inner, outer = drawn.scales[0], drawn.scales[-1]
    a, b = np.linalg.norm(low), np.linalg.norm(high)
    # Forces are sums of products of gradients, also where terms cancel.
    scale = EPS * float((a + b) ** 2) * p
    along = float(drawn.weights @ g)
    forces = {
        "unskipped_force": parts.scale_force(inner, skipped=False),
        "skipped_force": parts.scale_force(outer, skipped=True),
        "gradient_square": float(g @ g),
        "gradient_ratio": float(b / a) if a else 0.0,
        "norm_force": parts.norm_force(float(size)),
        "printed_norm_force": -float((m + p) * (b**2 + high @ low)) / float(size),
        "euler": parts.euler(),
        "inverse_size_turn": -along / (config.weights * float(size) ** 3),
        "printed_inverse_size_turn": along / float(size) ** 1.5,
        "least_bracket": least_norm_force(float(a), float(b), shallow=m, deep=p),
    }
    bound = scale / min(1.0, abs(inner), abs(outer), float(size) ** 3)
    return {name: (value, bound) for name, value in forces.items()}

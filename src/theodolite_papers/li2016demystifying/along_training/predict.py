"""What is known at both ends of training: at zero weights, and at an optimum."""

import numpy as np

from theodolite.core import Row, Rows, ShortcutBlueprint
from theodolite.theory import conditioning_at_zero, linear_loss, moments

from ..shared.whitened import whitened
from .config import Config

EPS = float(np.finfo(np.float64).eps)


def predict(config: Config) -> Rows:
    """Closed forms at zero weights, the optimal loss, and the rank at an optimum."""
    x, y = whitened(config.dataset, config.width)
    data = moments(x, y)
    rows: list[Row] = []
    for depth in config.depths:
        plan = ShortcutBlueprint(width=config.width, depth=depth)
        found = conditioning_at_zero(plan, x, y)
        for name in ("ratio", "largest", "small", "index"):
            value = float(getattr(found, name))
            rows.append(
                {"quantity": name, "kind": "two_shortcut", "depth": depth,
                 "value": value, "error": 1e-13 * value}
            )  # fmt: skip
    zero = np.zeros((2, config.width, config.width))
    found = {
        "optimal_loss": data.optimal_loss(),
        "first_loss": linear_loss(
            ShortcutBlueprint(width=config.width, depth=2), zero, data
        ),
        # At an optimum the error vanishes and the Hessian is J'J, with as many rows
        # as the map has entries.
        "rank_at_optimum": float(config.width**2),
    }
    rows += [
        {"quantity": name, "value": value, "error": EPS * config.width * value}
        for name, value in found.items()
    ]
    return Rows(rows)

"""Closed forms at both ends of training: at zero weights, and at an optimum."""

import numpy as np

from theodolite.core import Row, Rows, ShortcutBlueprint
from theodolite.theory import conditioning_at_zero, linear_loss, moments

from ..shared.problems import EPS, closed
from ..shared.whitened import whitened
from .config import Config


def predict(config: Config) -> Rows:
    """Return closed forms at zero, the optimal loss, and the rank at an optimum."""
    x, y = whitened(config.dataset, config.width)
    data = moments(x, y)
    rows: list[Row] = []
    for depth in config.depths:
        plan = ShortcutBlueprint(width=config.width, depth=depth)
        at_zero = conditioning_at_zero(plan, x, y)
        names = ("ratio", "largest", "small", "index")
        numbers = {name: getattr(at_zero, name) for name in names}
        rows += closed(numbers, 1e-13, kind="two_shortcut", depth=depth)
    zero = np.zeros((2, config.width, config.width))
    numbers = {
        "optimal_loss": data.optimal_loss(),
        "first_loss": linear_loss(
            ShortcutBlueprint(width=config.width, depth=2), zero, data
        ),
        # At an optimum the error vanishes and the Hessian is J'J, with as many rows
        # as the map has entries.
        "rank_at_optimum": float(config.width**2),
    }
    return Rows(rows + closed(numbers, EPS * config.width))

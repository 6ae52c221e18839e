"""Norms of random initial weights."""

import math

from theodolite.core import Rows

from .config import Config


def predict(config: Config) -> Rows:
    """Return the root mean square of the norm of all layers' weights at the start."""
    # Each layer adds the number of its units: fan-in weights of variance 1/fan-in each.
    units = config.width * config.depth
    weights = config.width * (config.inputs + (config.depth - 1) * config.width)
    return Rows(
        {
            "quantity": quantity,
            "init_scale": scale,
            "value": value,
            # One standard deviation of the draw.
            "error": value / math.sqrt(2 * weights),
        }
        for scale in config.init_scales
        for quantity, value in (
            ("norm", scale * math.sqrt(units)),
            ("size", scale * math.sqrt(units / weights)),
        )
    )

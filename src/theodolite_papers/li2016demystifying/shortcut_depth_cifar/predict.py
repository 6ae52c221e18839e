"""Numbers of parameters of the networks, by formula."""

from theodolite.core import Rows

from .config import Config


def predict(config: Config) -> Rows:
    """Return the number of parameters at every depth, the same for all shortcuts."""
    rows = []
    for depth in config.depths:
        layers = config.layers(depth)
        last = layers[-1][1]
        # Convolutions with their normalisations, stem and classifier of ten.
        units = sum(9 * a * b + 2 * a for a, b in layers)
        count = 9 * config.channels * config.width + units + 2 * last + 10 * last + 10
        rows.append(
            {"quantity": "parameters", "depth": depth, "value": count, "error": 0.0}
        )
    return Rows(rows)

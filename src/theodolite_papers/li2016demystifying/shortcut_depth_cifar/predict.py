"""Parameters of the networks by formula."""

from theodolite.core import Rows

from .config import Config


def predict(config: Config) -> Rows:
    """Count the parameters at every depth; they are the same for all shortcuts."""
    return Rows(
        {"quantity": "parameters", "depth": d, "value": _count(config, d), "error": 0.0}
        for d in config.depths
    )


def _count(config: Config, depth: int) -> int:
    """Add convolutions with their normalisations, stem and classifier of ten."""
    layers = config.layers(depth)
    last = layers[-1][1]
    units = sum(9 * a * b + 2 * a for a, b in layers)
    return 9 * config.channels * config.width + units + 2 * last + 10 * last + 10

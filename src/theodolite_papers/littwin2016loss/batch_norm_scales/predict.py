"""Sizes of the layers of a wide network at its start, in closed form."""

from theodolite.core import Row, Rows
from theodolite.theory import scalar_norm_sizes

from .config import Config


def predict(config: Config) -> Rows:
    """Return squares, their increments and deviations layer by layer."""
    sizes = scalar_norm_sizes(config.layers)
    rows: list[Row] = []
    for layer in range(1, config.layers + 1):
        numbers = {
            "square": sizes.square[layer - 1],
            "deviation": sizes.deviation[layer - 1],
        }
        if layer > 1:
            numbers["increment"] = sizes.square[layer - 1] - sizes.square[layer - 2]
        rows += [
            # The error of Gaussian quadrature over a kink of the deviation.
            {"quantity": q, "layer": layer, "value": float(v), "error": 1e-4 * float(v)}
            for q, v in numbers.items()
        ]
    return Rows(rows)

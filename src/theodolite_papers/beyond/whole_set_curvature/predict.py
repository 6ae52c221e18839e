r"""The curvature at which each rule stops being stable: $2(1 + \mu)/\eta$."""

from theodolite.core import Rows
from theodolite.theory import stability_edge

from .config import DESCENT, STOCHASTIC, Config


def predict(config: Config) -> Rows:
    """Return the curvature above which each rule diverges on a quadratic."""
    edges = {
        DESCENT: stability_edge(config.descent_rate),
        STOCHASTIC: stability_edge(config.rate, config.momentum),
    }
    return Rows(
        {"quantity": "edge", "rule": rule, "value": edge, "error": 1e-12 * edge}
        for rule, edge in edges.items()
    )

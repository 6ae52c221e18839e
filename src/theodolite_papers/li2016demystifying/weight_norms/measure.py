"""Train networks and measure the norms of their matrices during training."""

import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from theodolite import networks, training
from theodolite.core import Cell, Row, Rows, ShortcutBlueprint

from ..shared.whitened import whitened
from .config import NETWORKS, Config


@dataclass(eq=False)
class Ends:
    """Measures the largest unit at the end, and keeps the final weights."""

    weights: list[tuple[np.ndarray, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, snapshot: Any) -> dict[str, float]:
        """Measure one network."""
        weights = networks.get_weights(snapshot.model)
        self.weights.append((weights, snapshot.labels))
        units = np.linalg.norm(weights[1::2] @ weights[::2], ord=2, axis=(1, 2))
        return {"unit": units.max()}


def measure(config: Config, cell: Cell) -> Rows:
    """Train every seed at every rate and return the norms."""
    return trained(config, tuple(cell.items()))[0]


def blueprint(config: Config, cell: Cell) -> ShortcutBlueprint:
    """Return the network of a cell."""
    kind = NETWORKS[cell["network"]]
    return ShortcutBlueprint(width=config.width, depth=cell["depth"], **kind)


@lru_cache(maxsize=1)  # `combine` needs it right after, in the same cell
def trained(config: Config, key: tuple[tuple[str, Any], ...]) -> tuple[Rows, Ends]:
    """Return the rows of a cell's networks, and their final weights."""
    plan = blueprint(config, dict(key))
    x, y = whitened(config.dataset, config.width)
    if not plan.linear:
        x, y = x[:: config.relu_stride], y[:: config.relu_stride]
    # On a GPU the samples of ReLU networks go through in float32, linear networks need
    # the moments only.
    single = config.device != "cpu" and not plan.linear
    dtype = "float32" if single else "float64"
    ends = Ends()
    with warnings.catch_warnings():
        # It is a result, kept in the rows, if every run at a rate diverges.
        warnings.simplefilter("ignore", training.GridWarning)
        grid = training.train_grid(
            plan,
            (x, y),
            {"seed": config.seeds, "lr": config.rates},
            steps=config.steps,
            probes=[
                training.Probe("norm", mean_norm, training.AtSteps(config.looked_at)),
                training.Probe("end", ends, training.AtSteps([config.steps])),
            ],
            device=config.device,
            dtype=dtype,
            jobs=0,
        )
    eps = float(np.finfo(dtype).eps)
    return Rows(_labelled(row, eps) for row in grid.rows), ends


def mean_norm(snapshot: Any) -> float:
    """Return the mean Frobenius norm over matrices."""
    weights = networks.get_weights(snapshot.model)
    return float(np.linalg.norm(weights, axis=(1, 2)).mean())


def _labelled(row: Row, eps: float) -> Row:
    """Rename the seed to ``trial``, and add the rounding error of probed numbers."""
    new = {key: value for key, value in row.items() if key not in ("seed", "piece")}
    new["trial"] = row["seed"]
    if row["quantity"] in ("norm", "end/unit"):
        new["error"] = 100 * eps * row["value"]
    return new

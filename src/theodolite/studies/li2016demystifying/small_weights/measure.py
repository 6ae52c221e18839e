"""Digits and their labels against assumptions 1 and 2."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Row, Rows
from theodolite.studies.li2016demystifying.shared.whitened import whitened
from theodolite.studies.li2016demystifying.small_weights.config import Config


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Look at norms and labels of whitened digits; the rest needs a construction."""
    return Rows(_digits(config) if cell["task"] == "labels" else ())


def _digits(config: Config) -> list[Row]:
    x, y = whitened(config.dataset, 10)
    norms = np.linalg.norm(x, axis=1)
    chosen = y[: config.samples]
    apart = np.linalg.norm(chosen[:, None] - chosen, axis=2)
    found = {
        "label_distance": apart[~np.eye(len(chosen), dtype=bool)].min(),
        "distinct_labels": len(np.unique(y, axis=0)),
        "digits": len(y),
        "norm_least": norms.min(),
        "norm_most": norms.max(),
    }
    # Labels are whole numbers: their distances and counts are exact.
    rounding = {"norm_least": 1e-12, "norm_most": 1e-12}
    return [
        {"quantity": name, "value": float(v), "error": rounding.get(name, 0.0)}
        for name, v in found.items()
    ]

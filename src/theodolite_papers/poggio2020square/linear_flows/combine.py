"""Distance of the end of descent from the predicted equilibrium."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Row, Rows, named_rows
from theodolite.theory import LinearFlow

from .config import SETTINGS, Config, data
from .measure import final_weights


def combine(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Return the distance of the final weights from the equilibrium, per setting."""
    if cell["part"] != "ends":
        return Rows([])
    rows: list[Row] = []
    for shape, loss, decay in SETTINGS:
        weights = final_weights(config, shape, loss, decay)
        for trial, of_starts in zip(config.seeds, weights, strict=True):
            x, y = data(config, shape, trial)
            flow = LinearFlow(inputs=x, labels=y, loss=loss, decay=decay)
            rest = flow.rest()
            far = np.linalg.norm(of_starts - rest, axis=1).max()
            labels = {"shape": shape, "loss": loss, "decay": decay, "trial": trial}
            gap = {"rest_gap": far / np.linalg.norm(rest)}
            rows += named_rows(gap, 1e-9, **labels)
    return Rows(rows)

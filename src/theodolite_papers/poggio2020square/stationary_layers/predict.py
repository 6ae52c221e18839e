"""Closed forms of the gradients, floors under the gaps, and solutions."""

import numpy as np

from theodolite import theory
from theodolite.core import Row, Rows

from ..shared.split_classes import two_digits
from .config import DIAGONAL_INPUT, INPUTS, Config, instances

EPS = 1e-13


def predict(config: Config) -> Rows:
    """Return the predictions for trained and for written-down networks."""
    output, _ = theory.diagonal_solution(DIAGONAL_INPUT, 4)
    p, digits = INPUTS, two_digits(config.samples).inputs
    rows: list[Row] = [
        {
            "quantity": "first_layer_floor",
            "value": theory.least_first_layer_gap(digits),
        },
        {"quantity": "class_floor", "value": theory.TWO_CLASS_GAP},
        {"quantity": "diagonal_output", "law": "corrected", "value": output},
        # Of normal matrices scaled to one norm; exact by Wishart's moments.
        {"quantity": "matrix_distance", "value": (p * p + p - 2) / (p * p + 2)},
        {"quantity": "column_cosine", "value": 1 / p},
    ]
    for trial in config.seeds:
        rows += _written(config, trial)
    return Rows({**row, "error": EPS} for row in rows)


def _written(config: Config, trial: int) -> list[Row]:
    rows: list[Row] = []
    for name, instance in instances(config, trial).items():
        factors = theory.layer_factors(
            list(instance.layers), instance.x, relu=instance.relu
        )
        labels = {"network": name, "trial": trial}
        norms = factors.gradient_norms
        rows += [
            {"quantity": "gradient_norm", "layer": k, **labels, "value": float(norm)}
            for k, norm in enumerate(norms, start=1)
        ]
        if instance.rank:
            gap = theory.projection_gap(instance.rank, min(1.0, instance.cosine))
            rows.append(
                {"quantity": "constraint_gap", "layer": 1, **labels, "value": gap}
            )
        pairs = zip(factors.back[:-1], factors.inputs[:-1], strict=True)
        for k, pair in enumerate(pairs, start=1):
            outer = np.outer(*pair)
            off = float(np.linalg.norm(outer - np.diag(np.diag(outer))))
            rows.append(
                {"quantity": "off_diagonal", "layer": k, **labels, "value": off}
            )
    return rows

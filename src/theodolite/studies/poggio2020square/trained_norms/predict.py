"""What the captions fix before training."""

from theodolite.core import Row, Rows
from theodolite.studies.poggio2020square.trained_norms.config import (
    DEPTH,
    Config,
    runs,
)


def predict(config: Config) -> Rows:
    r"""Return $\rho$ at the start, the product of four norms, for every condition."""
    del config
    rows: list[Row] = []
    for condition, start in runs():
        value = start**DEPTH
        rows.append(
            {"quantity": "rho_start", "condition": condition, "start": start,
             "value": value, "error": 1e-12 * value}
        )  # fmt: skip
    return Rows(rows)

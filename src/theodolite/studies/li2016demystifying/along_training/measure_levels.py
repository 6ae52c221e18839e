"""Numbers of a run's states put onto common levels of the loss."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from theodolite.core import Row, Status


def onto_levels(rows: Iterable[Row], levels: Mapping[float, float]) -> list[Row]:
    """Interpolate a run's states linearly in the loss onto common levels.

    Args:
        rows: Rows of one run with ``loss``, its first state among them.
        levels: Fraction of the excess loss to loss.

    Returns:
        A row a quantity and level that the run passed, with the distance to its
        nearest state as error, and the ratio of the two extremes.
    """
    found: list[Row] = []
    by_name: dict[str, dict[float, Row]] = {}
    for row in rows:
        by_name.setdefault(row["quantity"], {})[row["loss"]] = row
    for fraction, loss in levels.items():
        here: dict[str, Row] = {}
        for name, states in by_name.items():
            losses = np.array(sorted(states))
            if losses[0] <= loss <= losses[-1]:
                labels = {"quantity": name, "fraction": fraction, "loss": loss}
                here[name] = {**labels, **_between(states, losses, loss)}
        found += [*here.values(), *_ratio(here)]
    return found


def _between(
    states: Mapping[float, Row], losses: np.ndarray, loss: float
) -> dict[str, Any]:
    values = np.array([states[each]["value"] for each in losses])
    nearest = states[losses[np.argmin(np.abs(losses - loss))]]
    value = float(np.interp(loss, losses, values))
    return {
        "value": value,
        "error": abs(value - nearest["value"]) + nearest["error"],
        "status": nearest.get("status", str(Status.EXACT)),
    }


def _ratio(here: Mapping[str, Row]) -> list[Row]:
    if "largest" not in here or "small" not in here:
        return []
    top, low = here["largest"], here["small"]
    value = top["value"] / low["value"] if low["value"] else float("inf")
    error = value * (top["error"] / top["value"] + low["error"] / low["value"])
    return [{**low, "quantity": "ratio", "value": value, "error": error}]

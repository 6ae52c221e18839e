"""What the figure shows, and what is printed beside predictions."""

from typing import Any

import numpy as np

from theodolite.core import Roads, Row, Rows
from theodolite.studies.macdonald2023skip.global_convergence.config import REACHED

ONE = {"layers": 1, "multiple": 1.0}
UNIT = {"cost": "logistic", "layers": 2, "multiple": 8.0}
# Cases of the figure, and the rows of losses above the infimum that they are made of.
CASES: dict[str, dict[str, Any]] = {
    "one layer": {**ONE, "start": "unit"},
    "one layer, huge start": {**ONE, "start": "huge"},
    "branch at zero, tanh": {**UNIT, "gate": "tanh"},
    "open set, smooth gate": {**UNIT, "gate": "bump"},
    "square cost, near a fit": {"start": "near", "multiple": 8.0},
}
NORMAL = {"layers": 2, "start": "unit"}


def table(roads: Roads) -> Rows:
    """Return medians of losses above the infimum by case and by certified steps."""
    excess = roads.measured.where(quantity="excess")
    groups = {name: excess.where(**labels) for name, labels in CASES.items()}
    lost = {
        (row["trial"], row["copy"], row["multiple"])
        for row in roads.measured.where(quantity="limit_above", **NORMAL)
        if row["value"] >= REACHED
    }
    normal = excess.where(**NORMAL)
    for name, wanted in (("reaches", False), ("is lost", True)):
        groups[f"two layers, {name}"] = Rows(
            row
            for row in normal
            if ((row["trial"], row["copy"], row["multiple"]) in lost) is wanted
        )
    rows = [row for name, found in groups.items() for row in _medians(name, found)]
    constants = roads.predicted.where(quantity="constant").values()
    for step in groups["one layer"].levels("step"):
        law = float(np.median(constants)) / step**0.5
        rows.append(
            {"case": "law of one layer", "step": step, "value": law, "error": 0}
        )
    return Rows(rows)


def _medians(name: str, rows: Rows) -> list[Row]:
    found: list[Row] = []
    for step in rows.levels("step"):
        some = rows.where(step=step)
        low, middle, high = np.quantile(some.values(), (0.25, 0.5, 0.75))
        if step > 0 and middle > 0:
            at = {"case": name, "step": step * some.column("multiple")[0]}
            found.append({**at, "value": middle, "error": (high - low) / 2})
    return found


def compare(roads: Roads) -> list[Row]:
    """Limits of networks that stall, and the law of one layer, beside descent."""
    rows: list[Row] = []
    for row in roads.predicted.where(quantity="stall"):
        labels = {key: row[key] for key in ("gate", "cost", "layers")}
        at = roads.measured.where(quantity="loss", multiple=64.0, **labels)
        rows.append(
            {
                "label": "stall: {gate}, {cost} cost, {layers} layers".format(**labels),
                "predicted": row["value"],
                "measured": float(at.values().mean()),
                "error": float(np.ptp(at.values())) + abs(at.values("error")[0]),
            }
        )
    for start in ("tiny", "unit"):
        over = roads.measured.where(quantity="over_law", layers=1, start=start)
        spread = over.values().std(ddof=1) / len(over) ** 0.5
        rows.append(
            {
                "label": f"one layer, loss above the infimum over its law, {start}",
                "predicted": 1.0,
                "measured": float(over.values().mean()),
                "error": float(spread),
            }
        )
    return rows

"""Train, choose and hold out: one task by one method on one split."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Row, Rows

from .config import COURSE, STARTS, TASKS, Config


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train from every start at every setting, and compare what starts lead to."""
    from . import measure_networks as part

    split = part.split_of(cell["task"], cell["trial"], config.seed)
    rows: list[Row] = []
    places = config.settings(cell["method"], TASKS[cell["task"]][1])
    for place, (rate, knob) in enumerate(places):
        labels = {**cell, "setting": place, "rate": rate, "knob": knob}
        ends = [
            part.trained(config, cell, split, (rate, knob), start) for start in STARTS
        ]
        rows += _between(ends, labels)
        for start, end in zip(STARTS, ends, strict=True):
            rows += [
                {"quantity": name, **labels, "start": start, "value": value,
                 "error": end.errors.get(name, 0.0)}
                for name, value in end.numbers.items()
            ]  # fmt: skip
        if cell["method"] == "grown" and place == 0:
            # Norms are looked at to rounding of float32.
            rows += [
                {"quantity": "course", "share": share, "trial": cell["trial"],
                 "task": cell["task"], "value": value, "error": 1e-6}
                for share, value in zip(COURSE, ends[0].course, strict=True)
            ]  # fmt: skip
    return Rows(rows)


def _between(ends: list[Any], labels: dict[str, Any]) -> list[Row]:
    """Return how far the networks of different starts are from one another."""
    first, second = ends
    margins = [end.numbers["mean_margin"] for end in ends]
    found = {
        "disagreement": float(np.mean(first.decisions != second.decisions)),
        "margin_gap": abs(float(np.log10(margins[0] / margins[1])))
        if min(margins) > 0
        else float("nan"),
    }
    # Decisions are counted; margins are known to float32 rounding of sums.
    error = {"disagreement": 0.0, "margin_gap": 1e-4}
    return [
        {"quantity": k, **labels, "value": v, "error": error[k]}
        for k, v in found.items()
    ]

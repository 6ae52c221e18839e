"""Train one method on one split of one task, and read its networks."""

from typing import Any

import numpy as np

from theodolite.core import Cell, Row, Rows, named_rows

from .config import COURSE, STARTS, TASKS, Config


def measure(config: Config, cell: Cell) -> Rows:
    """Train from every start at every setting, and compare the ends of the starts."""
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
            for name, value in end.numbers.items():
                error = end.errors.get(name, 0.0)
                rows += named_rows({name: value}, error, **labels, start=start)
        if cell["method"] == "grown" and place == 0:
            # Norms are known to float32 rounding.
            of = {"trial": cell["trial"], "task": cell["task"]}
            for share, value in zip(COURSE, ends[0].course, strict=True):
                rows += named_rows({"course": value}, 1e-6, share=share, **of)
    return Rows(rows)


def _between(ends: list[Any], labels: dict[str, Any]) -> list[Row]:
    """Return how much networks from different starts disagree."""
    first, second = ends
    margins = [end.numbers["mean_margin"] for end in ends]
    apart = float(np.mean(first.decisions != second.decisions))
    seen = min(margins) > 0
    gap = abs(float(np.log10(margins[0] / margins[1]))) if seen else float("nan")
    # Decisions are counted; margins are known to float32 rounding of sums.
    return [
        *named_rows({"disagreement": apart}, 0.0, **labels),
        *named_rows({"margin_gap": gap}, 1e-4, **labels),
    ]

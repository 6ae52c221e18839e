"""Errors, disagreements and margins of each method, task by task."""

import math

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    beside,
    group_means,
    measured,
)

SHOWN = ("held_error", "disagreement", "mean_margin")


def chosen(rows: Rows) -> Rows:
    """Keep the setting with the least validation error; the loss breaks ties.

    Each split chooses its setting over both starts. It is judged on held-out samples,
    which had no part in the choice.
    """
    scores: dict[tuple, dict[int, list[float]]] = {}
    for row in rows:
        if row.get("quantity") in ("choice_error", "choice_loss"):
            place = scores.setdefault(_key(row), {}).setdefault(
                row["setting"], [0.0, 0.0]
            )
            value = row["value"]
            known = value is not None and math.isfinite(value)
            place[row["quantity"] == "choice_loss"] += value if known else math.inf
    best = {
        key: min(places, key=lambda setting: (*places[setting], setting))
        for key, places in scores.items()
    }
    return rows.where(
        lambda row: "setting" not in row or row["setting"] == best.get(_key(row))
    )


def _key(row: Row) -> tuple:
    return tuple(row.get(label) for label in ("task", "method", "trial"))


def table(both: PredictedAndMeasured) -> Rows:
    """Return errors, disagreements and margins by task and method."""
    kept = chosen(both.measured)
    return Rows.joined(
        group_means(_averaged(kept.where(quantity=name)), ("task", "method"))
        for name in SHOWN
    )


def _averaged(rows: Rows) -> Rows:
    """Average over the starts of each split; only splits are independent."""
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault(_key(row), []).append(row)
    return Rows(
        {**group[0], "value": sum(float(row["value"]) for row in group) / len(group)}
        for group in groups.values()
    )


compare = beside(("norm over its end, {share:.0%} of the steps", measured("course")))


LABELS = {
    "decay": "batch norm and decay",
    "grown": "batch norm, norm grows",
    "held": "batch norm, norm held",
    "bare": "no batch norm, norm grows",
}
KINDS = {"decay": "decay", "grown": "grown", "held": "held", "bare": "no_norm"}
PANELS = {
    "held_error": "held-out error",
    "disagreement": "starts decide differently",
    "mean_margin": "mean margin",
}
APART = 0.16


def draw(table: Rows) -> "figures.Figure":
    """Draw one panel per quantity and one place per task."""
    figure, panels = figures.new_figure(7.0, 4.2, panels=(1, len(PANELS)))
    tasks, names = table.levels("task"), list(LABELS)
    for panel, (quantity, title) in zip(panels, PANELS.items(), strict=True):
        for shift, method in enumerate(names):
            rows = table.where(quantity=quantity, method=method)
            places = [tasks.index(task) for task in rows.column("task")]
            figures.band(
                panel,
                [place + APART * (shift - 1.5) for place in places],
                rows.values(),
                rows.values("error"),
                style=figures.kind_style(KINDS[method]),
                label=LABELS[method],
                kind="bars",
                line=False,
            )
        panel.set_title(title)
        panel.set_xticks(
            range(len(tasks)), [task.replace(", ", "\n") for task in tasks]
        )
        panel.tick_params(axis="x", labelrotation=60)
    figures.log_axis(panels[2], "y")
    panels[0].set_ylim(bottom=0)
    panels[1].set_ylim(bottom=0)
    figures.shared_legend(figure)
    return figure

"""Draw losses above the infimum against steps: which runs reach it, and how fast."""

from typing import Any

import numpy as np

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row

LAW = "law of one layer"
ONE = {"layers": 1, "multiple": 1.0}
UNIT = {"cost": "logistic", "layers": 2, "multiple": 8.0}
# Cases of the figure, and the rows of losses above the infimum that they are made of.
ROWS_OF: dict[str, dict[str, Any]] = {
    "one layer": {**ONE, "start": "unit"},
    "one layer, huge start": {**ONE, "start": "huge"},
    "branch at zero, tanh": {**UNIT, "gate": "tanh"},
    "open set, smooth gate": {**UNIT, "gate": "bump"},
}
NORMAL = {"layers": 2, "start": "unit"}
TWO = "two layers, normal starts"
# Drawn value of limits within rounding of the best, and of losses below it.
LEAST = 1e-9
FITTED = 1e-24


def table(both: PredictedAndMeasured) -> Rows:
    """Return medians of losses above the infimum by case and by certified steps."""
    excess = both.measured.where(quantity="excess")
    rows: list[Row] = []
    for name, labels in ROWS_OF.items():
        rows += _medians("arrival", name, excess.where(**labels))
    rows += _normal_starts(both)
    for multiple in excess.where(start="near").levels("multiple"):
        some = excess.where(start="near", multiple=multiple)
        fits = _medians("fit", f"{multiple:g} times the step", some)
        rows += [row for row in fits if row["value"] > FITTED]
    constants = both.predicted.where(quantity="constant").values()
    for step in excess.where(**ROWS_OF["one layer"]).levels("step"):
        law = float(np.median(constants)) / step**0.5
        rows.append(_row("arrival", LAW, step, law, 0.0))
    return Rows(rows)


def _normal_starts(both: PredictedAndMeasured) -> list[Row]:
    """Return rows of two-layer networks from Gaussian weights.

    These are the medians along training and the sorted limits.
    """
    rows = _medians("arrival", TWO, both.measured.where(quantity="excess", **NORMAL))
    of = {
        name: both.measured.where(quantity=name, **NORMAL)
        for name in ("carried_excess", "carried_time", "limit_above")
    }
    for stage in of["carried_excess"].levels("stage"):
        step = float(np.median(of["carried_time"].where(stage=stage).values()))
        some = of["carried_excess"].where(stage=stage)
        rows.append(_median("arrival", TWO, step, some))
    for multiple in of["limit_above"].levels("multiple"):
        limits = np.sort(of["limit_above"].where(multiple=multiple).values())
        name = f"{multiple:g} times the step"
        for rank, limit in enumerate(limits, start=1):
            share = rank / len(limits)
            rows.append(_row("limits", name, share, max(float(limit), LEAST), 0.0))
    return rows


def _medians(panel: str, name: str, rows: Rows) -> list[Row]:
    table: list[Row] = []
    for step in rows.levels("step"):
        some = rows.where(step=step)
        if step > 0:
            time = step * some.column("multiple")[0]
            table.append(_median(panel, name, time, some))
    return table


def _median(panel: str, name: str, step: float, rows: Rows) -> Row:
    low, middle, high = np.quantile(rows.values(), (0.25, 0.5, 0.75))
    # Half of the middle half, kept from passing zero on a logarithmic axis.
    error = min((high - low) / 2, 0.9 * middle)
    return _row(panel, name, step, float(middle), float(error))


def _row(panel: str, name: str, step: float, value: float, error: float) -> Row:
    return {"panel": panel, "case": name, "step": step, "value": value, "error": error}


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return limits of stalled networks and one layer's law, beside descent."""
    rows: list[Row] = []
    for row in both.predicted.where(quantity="stall"):
        labels = {key: row[key] for key in ("gate", "cost", "layers")}
        at = both.measured.where(quantity="loss", multiple=64.0, **labels)
        label = "stall: {gate}, {cost} cost, {layers} layers".format(**labels)
        error = float(np.ptp(at.values())) + abs(at.values("error")[0])
        loss = {"value": float(at.values().mean()), "error": error}
        rows.append(compared_row(label, row["value"], loss))
    for start in ("tiny", "unit"):
        over = both.measured.where(quantity="over_law", layers=1, start=start)
        error = float(over.values().std(ddof=1) / len(over) ** 0.5)
        label = f"one layer, loss above the infimum over its law, {start}"
        mean = {"value": float(over.values().mean()), "error": error}
        rows.append(compared_row(label, 1.0, mean))
    return rows


CASES = {
    "one layer": "one_layer",
    "one layer, huge start": "one_layer_far",
    "two layers, normal starts": "two_layers",
    "branch at zero, tanh": "branch_at_zero",
    "open set, smooth gate": "smooth_gate",
}
PANELS = {
    "arrival": ("logistic cost and cross-entropy", "steps, in units of the certified"),
    "limits": ("limits of two layers, sorted", "share of normal starts"),
    "fit": ("square cost, near a fit", "steps, in units of the certified"),
}


def draw(table: Rows) -> "figures.Figure":
    """Draw medians over networks, sorted limits, and fits."""
    figure, panels = figures.new_figure(7.0, 7.0, panels=(2, 2))
    panels.pop().remove()
    for (name, (title, below)), panel in zip(PANELS.items(), panels, strict=True):
        rows = table.where(panel=name)
        steps = sorted(rows.levels("case"), key=len)  # 1, 8 and 64 times
        for case in CASES if name == "arrival" else steps:
            style = CASES.get(case) or figures.ordered_style(case, steps)
            some = rows.where(case=case)
            figures.row_band(panel, some, "step", style=style, label=case)
        figures.log_axis(panel, "y")
        panel.set_title(title)
        panel.set_xlabel(below)
    law = table.where(case=LAW)
    first = panels[0]
    figures.row_curve(first, law, "step", style="measured", label=LAW)
    figures.log_axis(first, "x")
    first.set_ylim(1e-4, 100)
    for panel in panels:
        panel.set_ylabel(r"$\ell_t - \inf\ell$")
    figures.shared_legend(figure)
    return figure

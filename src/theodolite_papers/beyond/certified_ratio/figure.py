"""Levels of the certified value, and a figure of them along training."""

import numpy as np

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, estimate, named_rows

from .config import BOTH, KINDS, NEITHER, NORMS, SKIPS, TASKS

# Of the difference of two logarithms whose numbers have a relative error of 1e-3.
ERROR, TINY = 1e-3, 1e-20
# What is certified: the ratio, or under cross-entropy, whose own constant vanishes with
# the loss, the smallest eigenvalue of the tangent kernel.
QUANTITY = {
    task: "kernel_bound" if cost == "cross_entropy" else "ratio_bound"
    for task, (cost, _) in TASKS.items()
}


def levels(rows: Rows) -> Rows:
    """Return logarithms of certified values over those before the first step.

    Runs that diverged are left out, and a bound below 1e-20 counts as that.
    """
    lost = {
        (row["task"], row["kind"], row["trial"]) for row in rows if row["value"] is None
    }
    table: list[Row] = []
    for task, quantity in QUANTITY.items():
        logs = {
            (row["kind"], row["trial"], row["step"]): np.log10(max(row["value"], TINY))
            for row in rows.where(quantity=quantity, task=task)
            if (task, row["kind"], row["trial"]) not in lost
        }
        for (kind, trial, step), value in logs.items():
            for over, unit in (("own", kind), (BOTH, BOTH)):
                begins = (kind, step) == (unit, 0)
                if begins or (unit, trial, 0) not in logs:
                    continue
                at = {"task": task, "kind": kind, "trial": trial, "step": step}
                level = {"level": value - logs[unit, trial, 0]}
                table += named_rows(level, ERROR, over=over, **at)
    return Rows(table)


def rank_correlations(rows: Rows, task: str) -> dict[int, float]:
    """Return Spearman's correlation of certified and true ratio by trial."""
    found = {}
    for trial in rows.where(task=task).levels("trial"):
        here = rows.where(task=task, trial=trial)
        pair = [
            {(row["kind"], row["step"]): row["value"] for row in here.where(quantity=q)}
            for q in (QUANTITY[task], "ratio")
        ]
        places = [place for place in pair[0] if place in pair[1]]
        if len(places) > 2:
            values = np.array([[one[place] for place in places] for one in pair])
            ranks = values.argsort(axis=1).argsort(axis=1).astype(float)
            found[trial] = float(np.corrcoef(ranks)[0, 1])
    return found


def table(both: PredictedAndMeasured) -> Rows:
    """Return mean levels over trials, with standard errors."""
    found = levels(both.measured).where(over=BOTH)
    table: list[Row] = []
    for task in TASKS:
        for kind in KINDS:
            for step in found.levels("step"):
                values = found.where(task=task, kind=kind, step=step).values()
                if len(values) > 1:
                    size, at = estimate(values), {"task": task, "kind": kind}
                    row = named_rows({"level": size.mean}, size.stderr, step=step, **at)
                    table += row
    return Rows(table)


STYLES = {
    BOTH: "scalar_norm", SKIPS: "residual", NORMS: "batch_norm", NEITHER: "plain",
}  # fmt: skip


def draw(table: Rows) -> "figures.Figure":
    """Draw one panel per task and one line per kind of network."""
    figure, panels = figures.new_figure(7.0, 3.2, panels=(1, len(TASKS)), share_y=True)
    for panel, task in zip(panels, TASKS, strict=True):
        for kind in KINDS:
            rows = table.where(task=task, kind=kind)
            style = figures.kind_style(STYLES[kind])
            figures.row_band(panel, rows, "step", style=style, label=kind)
        figures.reference_line(panel, -1.0)
        panel.set_title(task)
        panel.set_xlabel("step")
        figures.power_axis(panel, "y")
    panels[0].set_ylabel("certified, over the start")
    figures.shared_legend(figure)
    return figure

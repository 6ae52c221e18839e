"""Draw figures 5 and 6 from saved rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    beside,
    group_means,
    measured,
    named_rows,
)

# "The beginning" ends where this fraction of the excess loss is left.
BEGINNING = 0.2
# Levels from this fraction of the excess loss down are near a minimiser.
NEAR = 0.01


def depths_of(measured: Rows) -> list[int]:
    """Return all depths, the paper's first: the only one with single runs."""
    first = measured.where(task="run").levels("depth")
    every = measured.where(task="levels").levels("depth")
    return [*first, *(depth for depth in every if depth not in first)]


def at_levels(which: int) -> Callable[[Rows], Rows]:
    """Return a function that keeps the rows at levels of the loss, at one depth.

    Runs that start below a level, or end above it, have no row there; levels that
    fewer than half of a kind's runs passed are left out.
    """

    def keep(measured: Rows) -> Rows:
        depths = depths_of(measured)
        if len(depths) <= which:
            return Rows()
        rows = measured.where(task="levels", depth=depths[which])
        return _passed(rows)

    return keep


def _passed(rows: Rows) -> Rows:
    runs = {kind: len(rows.where(kind=kind).levels("trial"))
            for kind in rows.levels("kind")}  # fmt: skip
    kept = rows.where(lambda row: row.get("fraction") is not None)
    count: dict[tuple, int] = {}
    for row in kept:
        key = row["quantity"], row["kind"], row["fraction"]
        count[key] = count.get(key, 0) + 1
    return kept.where(
        lambda row: (
            2 * count[row["quantity"], row["kind"], row["fraction"]]
            >= runs[row["kind"]]
        )
    )


def late(measured: Rows) -> Rows:
    """Return each network's mean logarithm of the ratio near a minimiser.

    The mean is an integral over the logarithm of the excess loss, so that the spacing
    of levels does not matter. Networks that lack a level are left out.
    """
    rows = at_levels(0)(measured).where(quantity="ratio")
    rows = rows.where(lambda row: row["fraction"] <= NEAR)
    levels = rows.levels("fraction")
    table: list[Row] = []
    for kind in rows.levels("kind"):
        for trial in rows.where(kind=kind).levels("trial"):
            mine = rows.where(kind=kind, trial=trial)
            if mine.levels("fraction") == levels and len(levels) > 1:
                number, error = _mean_log(mine)
                of = {"kind": kind, "trial": trial}
                table += named_rows({"late_ratio": number}, error, **of)
    return Rows(table)


def _mean_log(rows: Rows) -> tuple[float, float]:
    """Return the mean of log values, integrated over log excess loss, and its error."""
    order = np.argsort(rows.values("fraction"))
    x = np.log10(rows.values("fraction")[order])
    value, error = rows.values()[order], rows.values("error")[order]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log10(value)
        bounds = np.where(error < value, -np.log10(1 - error / value), np.inf)
    width = x[-1] - x[0]
    mean, error = (float(np.trapezoid(y, x) / width) for y in (logs, bounds))
    return mean, error


def drops(measured: Rows) -> Rows:
    """Return by how much each 2-shortcut network's index falls, early and later."""
    rows = measured.where(task="levels", kind="two_shortcut", quantity="index")
    rows = rows.where(depth=depths_of(measured)[0])
    table: list[Row] = []
    for trial in rows.levels("trial"):
        mine = sorted(rows.where(trial=trial), key=lambda row: -row["loss"])
        start, later = mine[0], [r for r in mine if r.get("fraction") is not None]
        after = [row for row in later if row["fraction"] <= BEGINNING]
        if start.get("step") != 0 or not after:
            continue
        lowest = min(after, key=lambda row: row["value"])
        pairs = {"early_drop": (start, after[0]), "later_drop": (after[0], lowest)}
        for name, (a, b) in pairs.items():
            fall = {name: a["value"] - b["value"]}
            table += named_rows(fall, a["error"] + b["error"], trial=trial)
    return Rows(table)


def peaks(measured: Rows) -> Rows:
    """Return when each single run's gradient peaks, and how far its index has dropped.

    Column ``error`` covers the steps between Hessians on both sides of the peak.
    """
    rows = measured.where(task="run")
    table: list[Row] = []
    for trial in rows.levels("trial"):
        table += _peak(rows.where(trial=trial), trial)
    return Rows(table)


def _peak(rows: Rows, trial: int) -> list[Row]:
    index, gradient = (rows.where(quantity=name) for name in ("index", "gradient"))
    steps, values = index.values("step"), index.values()
    drop = values[0] - values.min()
    made = (values[0] - values) / drop if drop > 0 else np.full_like(values, np.nan)
    at = int(np.argmax(gradient.values()))
    around = made[max(at - 1, 0) : at + 2]
    unsure = 2 * float(index.values("error").max()) / drop if drop > 0 else np.inf
    error = float(np.abs(around - made[at]).max()) + unsure
    table = named_rows({"peak": steps[at]}, np.diff(steps).max(), trial=trial)
    table += named_rows({"drop_at_peak": made[at]}, error, trial=trial)
    before = rows.where(quantity="curvature")[: max(at, 0)]
    if len(before):
        mean, error = (float(before.values(n).mean()) for n in ("value", "error"))
        table += named_rows({"curvature_before": mean}, error, trial=trial)
    return table


def level_table(
    quantities: tuple[str, ...], *, log: bool
) -> Callable[[PredictedAndMeasured], Rows]:
    """Return a function that makes means and spreads at each depth and level."""

    def table(both: PredictedAndMeasured) -> Rows:
        lines: list[Rows] = []
        for which in range(len(depths_of(both.measured))):
            rows = at_levels(which)(both.measured)
            lines += [
                group_means(
                    rows.where(quantity=name),
                    ("quantity", "kind", "depth", "fraction"),
                    log=log,
                )
                for name in quantities
            ]
        return Rows.joined(lines)

    return table


def run_table(both: PredictedAndMeasured) -> Rows:
    """Return the first single run, and the step at which its gradient peaks."""
    rows = both.measured.where(task="run")
    first = rows.levels("trial")[0]
    return rows.where(trial=first) + peaks(rows.where(trial=first))


_STARTS = {"task": "levels", "kind": "two_shortcut", "step": 0}
compare = beside(
    *(
        (f"{name} at the start, 2-shortcut, depth {{depth}}", measured(name, **_STARTS))
        for name in ("largest", "small", "index")
    )
)


LABELS = {
    "xavier": "Xavier, no shortcut",
    "orthogonal": "orthogonal, no shortcut",
    "one_shortcut": "1-shortcut",
    "two_shortcut": "2-shortcut",
}
NAMES = list(LABELS)


def draw_eigenvalues(table: Rows) -> "figures.Figure":
    """Draw figure 5: extremes of the spectrum at equal loss."""
    figure, (panel,) = figures.new_figure(6.6, 4.4)
    depth = table.levels("depth")[-1]
    rows = table.where(depth=depth)
    for kind in NAMES:
        _series(panel, rows.where(quantity="largest"), kind)
        _series(panel, rows.where(quantity="small"), kind, hollow=True)
    _excess_axis(panel, "excess loss, as a fraction of that at zero weights")
    figures.power_axis(panel, "y")
    panel.set_ylabel(r"$|\lambda|_{\max}$ (filled), $|\lambda|_{(0.1)}$ (hollow)")
    panel.set_title(f"depth {depth}")
    figures.shared_legend(figure)
    return figure


def draw_ratio(table: Rows) -> "figures.Figure":
    """Draw the condition number at equal loss, one panel per depth."""
    figure, panels = _by_depth(table)
    panels[0].set_ylabel(r"$|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
    for panel in panels:
        figures.power_axis(panel, "y")
    figures.shared_legend(figure)
    return figure


def draw_index(table: Rows) -> "figures.Figure":
    """Draw figure 6, left: the index at equal loss."""
    figure, panels = _by_depth(table)
    for panel in panels:
        figures.reference_line(panel, 0.5)
    panels[0].set_ylabel("index (fraction of negative eigenvalues)")
    figures.shared_legend(figure)
    return figure


def draw_run(table: Rows) -> "figures.Figure":
    """Draw figure 6, right: gradient, curvature along it and index of one run."""
    labels = {
        "gradient": r"$\|\nabla L\|$",
        "curvature": "curvature\n" + r"along $\nabla L$",
        "index": "index (fraction\nof negative)",
    }
    figure, panels = figures.new_figure(6.2, 5.4, panels=(3, 1), share_x=True)
    style = figures.kind_style("two_shortcut")
    for panel, (name, label) in zip(panels, labels.items(), strict=True):
        kept = table.where(quantity=name)
        figures.line(panel, kept.column("step"), kept.values(), style=style)
        figures.reference_line(panel, table.value(quantity="peak"), along="y")
        panel.set_ylabel(label)
    figures.reference_line(panels[1], 0.0)
    panels[0].set_title(f"2-shortcut, depth {table.levels('depth')[0]}, one run")
    panels[2].set_xlabel("step of gradient descent")
    return figure


def _by_depth(table: Rows) -> tuple["figures.Figure", Any]:
    depths = table.levels("depth")[::-1]
    figure, panels = figures.new_figure(7.0, 3.9, panels=(1, len(depths)), share_y=True)
    for panel, depth in zip(panels, depths, strict=True):
        for kind in NAMES:
            _series(panel, table.where(depth=depth), kind)
        _excess_axis(panel, "excess loss, fraction")
        panel.set_title(f"depth {depth}")
    return figure, panels


def _series(
    panel: "figures.Axes", rows: Rows, kind: str, *, hollow: bool = False
) -> None:
    kept = rows.where(kind=kind)
    if len(kept):
        figures.row_band(
            panel,
            kept,
            "fraction",
            error="spread",
            style=kind,
            label=None if hollow else LABELS[kind],
            bound=[hollow] * len(kept),
            means=r"hollow: $|\lambda|_{(0.1)}$",
        )


def _excess_axis(panel: "figures.Axes", label: str) -> None:
    figures.log_axis(panel, "x")
    # Training goes from left to right.
    panel.invert_xaxis()
    panel.set_xlabel(label)

"""Figure 10 and the norms of theorem 1, from saved rows."""

import math
from typing import Any

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row

NAMES = {"basis": "3 samples, width 3", "detour": "4 samples, width 3"}


def table(both: PredictedAndMeasured) -> Rows:
    """Return the picture, and norms and bounds of each case's first set of points."""
    norms = both.measured.where(quantity="max_norm")
    cases = dict.fromkeys(norms.column("case"))
    first = {case: norms.where(case=case).levels("trial")[0] for case in cases}

    def drawn(row: Row) -> bool:
        return first.get(row.get("case", "")) == row.get("trial")

    rows = norms.where(drawn) + both.predicted.where(drawn, quantity="bound")
    named = ({**row, "name": _name(row["case"])} for row in rows)
    return Rows([*both.predicted.where(quantity="picture"), *named])


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return limits of the largest norm times √R beside the deepest networks."""
    rows: list[Row] = []
    for row in both.predicted.where(quantity="limit"):
        labels = {"case": row["case"], "trial": row["trial"]}
        norms = both.measured.where(quantity="max_norm", **labels)
        deepest = max(norms.column("units"))
        norm, root = norms.only(units=deepest), math.sqrt(deepest)
        label = "max ‖W‖ √R, points {case}, trial {trial}".format(**labels)
        measured = {key: norm[key] * root for key in ("value", "error")}
        rows.append(compared_row(f"{label}, {deepest} units", row["value"], measured))
    return rows


def _name(case: str) -> str:
    if case in NAMES:
        return NAMES[case]
    m, d = case.split(",")
    return f"{m} samples, width {d}"


def draw(table: Rows) -> "figures.Figure":
    """Draw a path on the sphere, and norms against the number of units."""
    figure, (sphere, norms) = figures.new_figure(7.0, 4.2, panels=(1, 2))
    _sphere(sphere, table.where(quantity="picture"))
    _norms(norms, table)
    return figure


def _sphere(panel: Any, rows: Rows) -> None:
    path, other = figures.kind_style("residual").colour, figures.TEXT_COLOUR
    _curve(panel, rows, "globe", None, color=figures.MUTED, linewidth=0.9)
    for place in rows.where(curve="cap").levels("sample"):
        rim = rows.where(curve="cap", sample=place)
        x, y = rim.values("right"), rim.values("up")
        panel.fill(x, y, color=other, alpha=0.1, linewidth=0)
        panel.plot(x, y, color=other, linewidth=0.8)
    dashes = {"color": figures.MUTED, "linestyle": "dashed"}
    _curve(panel, rows, "straight", "straight arc", **dashes)
    _curve(panel, rows, "path", None, color=path)
    dots = {"color": path, "linestyle": "none", "markersize": 3.0}
    _curve(panel, rows, "steps", "path, unit by unit", marker="o", **dots)
    others = rows.where(lambda row: row["curve"] == "sample" and row["sample"] > 0)
    panel.plot(
        others.values("right"),
        others.values("up"),
        color=other,
        marker="s",
        linestyle="none",
        label="other samples",
    )
    for name, place in (("sample", "left"), ("label", "right")):
        point = rows.only(curve=name, sample=0, step=0)
        panel.annotate(
            "$x$" if name == "sample" else "$y$",
            (point["right"], point["up"]),
            textcoords="offset points",
            xytext=(-4 if place == "left" else 4, -12),
            ha="center",
        )
    panel.set_aspect("equal")
    panel.set_axis_off()
    panel.set_title("around the caps of radius ρ/2")
    figures.legend(panel)


def _curve(panel: Any, rows: Rows, name: str, label: str | None, **look: Any) -> None:
    chosen = rows.where(curve=name)
    panel.plot(chosen.values("right"), chosen.values("up"), label=label, **look)


def _norms(panel: Any, table: Rows) -> None:
    rows = table.where(quantity="max_norm")
    names = list(dict.fromkeys(rows.column("name")))
    for name in names:
        style = figures.ordered_style(name, names)
        kept = rows.where(name=name)
        figures.row_band(panel, kept, "units", style=style, label=name, line=False)
        bound = table.where(quantity="bound", name=name)
        figures.row_curve(panel, bound, "units", style=style, means="bound")
    figures.log_axis(panel, "x")
    figures.log_axis(panel, "y")
    panel.set_title("built networks")
    panel.set_xlabel("residual units $R$")
    panel.set_ylabel(r"largest $\|W\|_F$")
    figures.legend(panel)

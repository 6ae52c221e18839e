"""Draw norms over time, transients by layers, and residuals at kinks."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, beside, measured


def unit_table(both: PredictedAndMeasured) -> Rows:
    """Return the norm of one unit and its equilibrium, over time."""
    kept = ("unit_norm", "unit_rest")
    return both.predicted.where(lambda row: row["quantity"] in kept)


def transient_table(both: PredictedAndMeasured) -> Rows:
    """Return the time to half the equilibrium, by flow and descent, and the growth."""
    theory = both.predicted.where(lambda r: r["quantity"] in ("transient", "growth"))
    real = both.measured.where(quantity="transient")
    return Rows(
        [
            *({**row, "road": "flow"} for row in theory),
            *({**row, "road": "descent"} for row in real),
        ]
    )


def kink_table(both: PredictedAndMeasured) -> Rows:
    """Return residuals of Eq 8 at the ends of descent, in their order."""
    rows: list[Row] = []
    for name in ("first_residual", "clarke_residual", "last_residual"):
        residuals = sorted(
            both.measured.where(quantity=name), key=lambda row: row["value"]
        )
        rows += [{**row, "rank": k} for k, row in enumerate(residuals, start=1)]
    return Rows(rows)


compare = beside(
    ("held norm, time {time}", measured("held_norm")),
    ("layered norm, layers {layers}, time {time}", measured("layered_norm")),
    ("peak, case {case}", measured("peak")),
    ("end, case {case}", measured("end")),
    ("equilibrium, case {case}", measured("equilibrium")),
    ("transient, layers {layers}, start {start}", measured("transient")),
)


KINDS = {
    "first_residual": "first_layer",
    "clarke_residual": "first_layer_kinks",
    "last_residual": "last_layer",
}
RESIDUALS = {
    "first_residual": "first layer, Eq 8",
    "clarke_residual": "first layer, shares at kinks",
    "last_residual": "last layer, Eq 8",
}


def draw_units(table: Rows) -> "figures.Figure":
    """Draw the norm of one unit, and its equilibrium at the present outputs."""
    cases = table.levels("case")
    figure, panels = figures.new_figure(
        7.0, 2.9, panels=(1, len(cases)), share_x=True, share_y=True
    )
    for case, panel in zip(cases, panels, strict=True):
        rows = table.where(quantity="unit_norm", case=case)
        style = figures.kind_style("measured")
        figures.row_line(panel, rows, "time", style=style, label=r"norm $\rho$")
        rows = table.where(quantity="unit_rest", case=case)
        figures.row_curve(
            panel,
            rows,
            "time",
            style=figures.kind_style("beside"),
            label=r"where it would rest, $\rho_{eq}(t)$",
        )
        panel.set(title=case, xlabel="time")
        panel.set_ylim(0, 3)
    panels[0].set_ylabel("norm")
    figures.shared_legend(figure)
    return figure


def draw_transients(table: Rows) -> "figures.Figure":
    """Draw growth over time, and times to half of the equilibrium by layers."""
    figure, (paths, times) = figures.new_figure(7.0, 3.8, panels=(1, 2))
    layers = table.levels("layers")
    for count in layers:
        rows = table.where(quantity="growth", layers=count)
        figures.row_line(
            paths,
            rows,
            "time",
            style=figures.ordered_style(count, layers),
            label=f"{count} layer{'s' if count > 1 else ''}",
        )
    starts = table.where(quantity="transient").levels("start")
    for start in starts:
        style = figures.ordered_style(start, starts)
        kept = table.where(quantity="transient", start=start)
        flow, descent = (kept.where(road=road) for road in ("flow", "descent"))
        figures.row_curve(times, flow, "layers", style=style, means="flow")
        figures.row_band(
            times,
            descent,
            "layers",
            style=style,
            label=rf"$\rho_0 = {start:g}$, descent",
            line=False,
        )
    figures.log_axis(times, "y")
    paths.set(xlabel="time", ylabel=r"$\rho$ from 0.01")
    times.set(xlabel="layers", ylabel="time to half of the rest")
    for panel in (paths, times):
        figures.legend(panel)
    return figure


def draw_kinks(table: Rows) -> "figures.Figure":
    """Draw residuals of Eq 8 at the ends of descent, network by network."""
    figure, (panel,) = figures.new_figure(6.0, 3.4)
    for name in RESIDUALS:
        rows = table.where(quantity=name)
        figures.row_band(
            panel,
            rows,
            "rank",
            error=None,
            style=figures.kind_style(KINDS[name]),
            label=RESIDUALS[name],
            line=False,
        )
    figures.log_axis(panel, "y")
    panel.locator_params(axis="x", integer=True)
    panel.set(xlabel="networks, by residual", ylabel=r"$\|\dot V_k\| \,/\, 2\rho$")
    figures.legend(panel)
    return figure

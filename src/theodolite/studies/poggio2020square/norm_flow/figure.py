"""Norms over time, transients by layers, and residuals at kinks, from rows."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESIDUALS = {
    "first_residual": "first layer, Eq 8",
    "clarke_residual": "first layer, shares at kinks",
    "last_residual": "last layer, Eq 8",
}


def draw_units(table: Rows) -> "Figure":
    """Draw the norm of one unit, and where it would rest with outputs as they are."""
    cases = table.levels("case")
    figure, panels = figures.new_figure(
        8.6, 2.9, panels=(1, len(cases)), share_x=True, share_y=True
    )
    names = ["unit_norm", "unit_rest"]
    for case, panel in zip(cases, panels, strict=True):
        for name, label in zip(names, (r"$\rho$", r"$\rho_{eq}(t)$"), strict=True):
            rows = table.where(quantity=name, case=case)
            style = figures.series_style(name, names)
            figures.curve(
                panel, rows.column("time"), rows.values(), style=style, label=label
            )
        panel.set_title(case)
        panel.set_xlabel("time")
        panel.set_ylim(0, 3)
    panels[0].set_ylabel("norm")
    figures.legend(panels[-1])
    return figure


def draw_transients(table: Rows) -> "Figure":
    """Draw growth over time, and times to half of the rest by layers."""
    figure, (paths, times) = figures.new_figure(8.6, 3.4, panels=(1, 2))
    layers = [str(n) for n in table.levels("layers")]
    for name in layers:
        rows = table.where(quantity="growth", layers=int(name))
        style = figures.series_style(name, layers)
        figures.curve(
            paths,
            rows.column("time"),
            rows.values(),
            style=style,
            label=f"{name} layers",
        )
    starts = [f"{s:g}" for s in table.where(quantity="transient").levels("start")]
    for name in starts:
        style = figures.series_style(name, starts)
        kept = table.where(quantity="transient", start=float(name))
        flow, descent = (kept.where(road=road) for road in ("flow", "descent"))
        figures.curve(times, flow.column("layers"), flow.values(), style=style)
        figures.band(
            times,
            descent.column("layers"),
            descent.values(),
            descent.values("error"),
            style=style,
            label=rf"$\rho_0 = {name}$",
            line=False,
        )
    figures.log_axis(times, "y")
    paths.set_xlabel("time")
    paths.set_ylabel(r"$\rho$ from 0.01")
    times.set_xlabel("layers")
    times.set_ylabel("time to half of the rest")
    for panel in (paths, times):
        figures.legend(panel)
    return figure


def draw_kinks(table: Rows) -> "Figure":
    """Draw residuals of Eq 8 at the ends of descent, network by network."""
    figure, (panel,) = figures.new_figure(6.0, 3.4)
    names = list(RESIDUALS)
    for name in names:
        rows = table.where(quantity=name)
        figures.band(
            panel,
            rows.column("rank"),
            rows.values(),
            style=figures.series_style(name, names),
            label=RESIDUALS[name],
            line=False,
        )
    figures.log_axis(panel, "y")
    panel.set_xlabel("networks, by residual")
    panel.set_ylabel(r"$\|\dot V_k\| \,/\, 2\rho$")
    figures.legend(panel)
    return figure

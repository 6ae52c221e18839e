"""Figure 1(f), counts against closed forms, and the approach to the limit."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COUNTED = ("three", "two-three", "two-four", "four", "beta-0.5", "beta-1", "beta-4")
LABELS = {
    "three": "order 3",
    "two-three": "orders 2 and 3",
    "two-four": "orders 2 and 4",
    "four": "plain, depth 4",
    "beta-0.5": "residual, $\\beta = 0.5$",
    "beta-1": "residual, $\\beta = 1$",
    "beta-4": "residual, $\\beta = 4$",
}


def draw_curves(table: Rows) -> "Figure":
    """Draw the exponent against the scale, a curve a depth."""
    figure, (panel,) = figures.new_figure(6.2, 4.0)
    depths = [str(depth) for depth in table.levels("depth")]
    for depth in table.levels("depth"):
        style = figures.series_style(str(depth), depths)
        rows = table.where(quantity="exponent", depth=depth)
        figures.curve(
            panel,
            rows.column("beta"),
            rows.values(),
            style=style,
            label=f"$p = {depth}$",
        )
        figures.rule(panel, table.value(quantity="plain_exponent", depth=depth))
    panel.plot([], [], ":", color="0.3", label="plain network")
    figures.log_axis(panel, "x")
    panel.set_xlabel(r"scale of a branch, $\beta$")
    panel.set_ylabel(r"exponent $\theta_k$")
    figures.legend(panel)
    return figure


def draw_counts(table: Rows) -> "Figure":
    """Draw counts against dimension with both formulas."""
    figure, (panel,) = figures.new_figure(6.8, 4.2)
    mixtures = [name for name in COUNTED if name in table.levels("mixture")]
    for name in mixtures:
        style = figures.series_style(name, mixtures)
        rows = table.where(quantity="total", mixture=name)
        figures.band(
            panel,
            rows.column("width"),
            rows.values(),
            rows.values("error"),
            style=style,
            label=LABELS[name],
            kind="bars",
            line=False,
        )
        closed = table.where(quantity="closed_form", mixture=name)
        figures.curve(panel, closed.column("width"), closed.values(), style=style)
    low = table.where(quantity="asymptotic")
    panel.plot(
        low.column("width"), low.values(), "x", color="0.4", label="Eq 31 as a number"
    )
    panel.plot([], [], "--", color="0.4", label="exact mean")
    figures.log_axis(panel, "y")
    panel.set_xticks(table.levels("width"))
    panel.set_xlabel(r"dimension $\Lambda$")
    panel.set_ylabel("critical points")
    figures.legend(panel, outside=True)
    return figure


def draw_approach(table: Rows) -> "Figure":
    """Draw the excess over Eq 31 against the dimension."""
    figure, (panel,) = figures.new_figure(6.2, 4.0)
    names = [f"{p}-{k}" for p in table.levels("order") for k in table.levels("index")]
    for order in table.levels("order"):
        for index in table.levels("index"):
            rows = table.where(order=order, index=index)
            figures.curve(
                panel,
                rows.column("width"),
                rows.values(),
                style=figures.series_style(f"{order}-{index}", names),
                label=f"order {order}, index {index}",
            )
    figures.log_axis(panel, "x", base=2, ticks=table.levels("width"))
    figures.log_axis(panel, "y")
    panel.set_xlabel(r"dimension $\Lambda$")
    panel.set_ylabel(r"$\frac{1}{\Lambda}\log E\,Crt_k - \theta_k$")
    figures.legend(panel, outside=True)
    return figure

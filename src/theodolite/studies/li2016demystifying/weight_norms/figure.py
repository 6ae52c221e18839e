"""Figure 3 from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"linear": "without nonlinearities", "relu": "with ReLU at mid"}


def draw_norms(table: Rows) -> "Figure":
    """Draw the mean norm against the step, one panel a network."""
    figure, panels = figures.new_figure(7.0, 3.8, panels=(1, 2), share_y=True)
    names = [str(depth) for depth in table.levels("depth")]
    for panel, (network, title) in zip(panels, TITLES.items(), strict=True):
        points = table.where(quantity="norm", network=network)
        for name in names:
            mine = points.where(depth=int(name))
            style = figures.series_style(name, names)
            figures.band(
                panel,
                mine.column("step"),
                mine.values(),
                mine.values("spread"),
                style=style,
                label=name,
            )
        if network == "linear":
            law = table.where(quantity="early_norm")
            panel.plot(
                law.column("step"),
                law.values(),
                color="0.25",
                linewidth=1.2,
                linestyle=(0, (4, 2)),
                label="near zero",
                zorder=3,
            )
        figures.log_axis(panel, "x")
        figures.log_axis(panel, "y")
        panel.set_title(f"{title}, rate {points.levels('lr')[0]:g}")
        panel.set_xlabel("step of gradient descent")
    panels[0].set_ylabel(r"mean $\|W\|_F$ over matrices")
    figures.legend(panels[0], title="depth")
    return figure


def draw_scaling(table: Rows) -> "Figure":
    """Draw final norms against the number of units."""
    figure, (panel,) = figures.new_figure(5.2, 3.8)
    names = list(TITLES)
    for name in names:
        points = table.where(quantity="norm", network=name)
        guide = table.where(quantity="inverse_root", network=name)
        style = figures.series_style(name, names)
        figures.band(
            panel,
            points.column("units"),
            points.values(),
            points.values("spread"),
            style=style,
            label=TITLES[name],
            bound=points.column("open"),
        )
        panel.plot(
            guide.column("units"),
            guide.values(),
            color=style.colour,
            linewidth=1.0,
            linestyle=(0, (1, 2)),
            label=r"$R^{-1/2}$" if name == "linear" else "_nolegend_",
        )
    figures.log_axis(panel, "x", base=2, ticks=table.levels("units"))
    panel.set_yscale("log", base=2)
    figures.log_axis(panel, "y", base=2, ticks=[0.5, 1.0, 2.0, 4.0])
    panel.set_xlabel("residual units $R$ (two matrices each)")
    panel.set_ylabel(r"mean $\|W\|_F$ at the end")
    figures.legend(panel)
    return figure

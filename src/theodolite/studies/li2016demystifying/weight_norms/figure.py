"""Figure 3 from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.li2016demystifying.weight_norms.config import PRESETS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"linear": "without nonlinearities", "relu": "with ReLU at mid"}
KINDS = {"linear": "two_shortcut", "relu": "two_shortcut_relu"}


def draw_norms(table: Rows) -> "Figure":
    """Draw the mean norm against the step, one panel a network."""
    figure, panels = figures.new_figure(7.0, 3.8, panels=(1, 2), share_y=True)
    depths = sorted({*table.levels("depth"), *PRESETS["paper"].depths})
    for panel, (network, title) in zip(panels, TITLES.items(), strict=True):
        points = table.where(quantity="norm", network=network)
        for depth in points.levels("depth"):
            mine = points.where(depth=depth)
            figures.band(
                panel,
                mine.column("step"),
                mine.values(),
                mine.values("spread"),
                style=figures.ordered_style(depth, depths),
                label=f"depth {depth}",
            )
        if network == "linear":
            law = table.where(quantity="early_norm")
            near = figures.curve(
                panel,
                law.column("step"),
                law.values(),
                style=figures.kind_style("measured"),
                label="law near zero",
            )
            near.set_zorder(3)
        figures.log_axis(panel, "x")
        figures.log_axis(panel, "y")
        panel.set_title(f"{title}, rate {points.levels('lr')[0]:g}")
        panel.set_xlabel("step of gradient descent")
    panels[0].set_ylabel(r"mean $\|W\|_F$ over matrices")
    figures.shared_legend(figure)
    return figure


def draw_scaling(table: Rows) -> "Figure":
    """Draw final norms against the number of units."""
    figure, (panel,) = figures.new_figure(5.2, 3.8)
    for name in TITLES:
        points = table.where(quantity="norm", network=name)
        guide = table.where(quantity="inverse_root", network=name)
        style = figures.kind_style(KINDS[name])
        figures.band(
            panel,
            points.column("units"),
            points.values(),
            points.values("spread"),
            style=style,
            label=TITLES[name],
            bound=points.column("open"),
            means="hollow: the best rate is not known",
        )
        figures.curve(
            panel,
            guide.column("units"),
            guide.values(),
            style=style,
            means=r"$R^{-1/2}$ through the last",
        )
    figures.log_axis(panel, "x", base=2, ticks=table.levels("units"))
    figures.log_axis(panel, "y", base=2, ticks=[0.5, 1.0, 2.0, 4.0])
    panel.set_xlabel("residual units $R$ (two matrices each)")
    panel.set_ylabel(r"mean $\|W\|_F$ at the end")
    figures.legend(panel)
    return figure

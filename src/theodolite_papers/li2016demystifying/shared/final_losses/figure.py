"""Figures 7 and 8 from rows of points."""

from dataclasses import replace
from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXES = {
    "excess": "final loss − optimal loss",
    "final_loss": "final loss",
}
LABELS = {
    "xavier": "Xavier",
    "orthogonal": "orthogonal",
    "one_shortcut": "1-shortcut",
    "two_shortcut": "2-shortcut",
    "three_shortcut": "3-shortcut",
}
# Networks that the paper leaves out of figure 8, and why.
BESIDE = {
    "one_shortcut": "1-shortcut (linear), not in the paper",
    "three_shortcut": "3-shortcut, not in the paper",
}
# Markers on a line of many rates.
MARKERS = 8
DIVERGES = "some network diverges at the next rate"


def draw(table: Rows) -> "Figure":
    """Draw losses and rates against depth."""
    figure, (left, right) = figures.new_figure(7.0, 3.8, panels=(1, 2))
    for name in _networks(table):
        rows = table.where(network=name)
        style, label = figures.kind_style(name), LABELS[name]
        if rows[0]["beside"]:
            style, label = replace(style, line="dashdot"), BESIDE[name]
        for panel, quantity in ((left, "loss"), (right, "rate")):
            shown = rows.where(quantity=quantity)
            figures.band(
                panel,
                shown.column("depth"),
                shown.values(),
                shown.values("error"),
                style=style,
                label=label if panel is right else None,
                bound=shown.column("open") if panel is right else None,
                means="hollow: no rate is best",
            )
    # Depths of networks beside are too close to the others for a tick each.
    ticks = table.where(beside=False).levels("depth")
    for panel in (left, right):
        figures.log_axis(panel, "x", base=2, ticks=ticks)
        figures.power_axis(panel, "y")
        panel.set_xlabel("depth (weight matrices)")
    zero = table.only(quantity="zero_map")
    left.set_ylabel(AXES[zero["plotted"]])
    right.set_ylabel("best learning rate")
    figures.reference_line(left, zero["value"], label="outputs zero")
    figures.shared_legend(figure)
    return figure


def draw_by_rate(table: Rows) -> "Figure":
    """Draw the mean loss against the rate, at three depths."""
    depths = table.levels("depth")
    figure, panels = figures.new_figure(7.0, 3.4, panels=(1, len(depths)), share_y=True)
    zero = table.only(quantity="zero_map")
    for panel, depth in zip(panels, depths, strict=True):
        for place, name in enumerate(_networks(table)):
            rows = table.where(quantity="mean", network=name, depth=depth)
            drawn = figures.band(
                panel,
                rows.column("rate"),
                rows.values(),
                rows.values("error"),
                style=figures.kind_style(name),
                label=LABELS[name],
                ends=DIVERGES if any(rows.column("last")) else None,
            )
            # Rates are dense: a few markers, no two series at the same rates.
            every = max(len(rows) // MARKERS, 1)
            drawn.set_markevery((place % every, every))
        figures.log_axis(panel, "x")
        figures.power_axis(panel, "y")
        panel.set_title(f"depth {depth}")
        panel.set_xlabel("learning rate")
        figures.reference_line(panel, zero["value"], label="outputs zero")
    panels[0].set_ylabel(AXES[zero["plotted"]])
    figures.shared_legend(figure)
    return figure


def _networks(table: Rows) -> list[str]:
    found = table.levels("network")
    return [name for name in LABELS if name in found]

"""Losses above the infimum against steps: what arrives, how fast, and what does not."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAW = "law of one layer"
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


def draw(table: Rows) -> "Figure":
    """Draw medians over networks, sorted limits, and fits."""
    figure, panels = figures.new_figure(7.0, 7.0, panels=(2, 2))
    panels.pop().remove()
    for (name, (title, below)), panel in zip(PANELS.items(), panels, strict=True):
        rows = table.where(panel=name)
        steps = sorted(rows.levels("case"), key=len)  # 1, 8 and 64 times
        for case in CASES if name == "arrival" else steps:
            kind = CASES.get(case)
            some = rows.where(case=case)
            figures.band(
                panel,
                some.column("step"),
                some.values(),
                some.values("error"),
                style=(
                    figures.kind_style(kind)
                    if kind
                    else figures.ordered_style(case, steps)
                ),
                label=case,
            )
        figures.log_axis(panel, "y")
        panel.set_title(title)
        panel.set_xlabel(below)
    law = table.where(case=LAW)
    first = panels[0]
    figures.curve(
        first,
        law.column("step"),
        law.values(),
        style=figures.kind_style("measured"),
        label=LAW,
    )
    figures.log_axis(first, "x")
    first.set_ylim(1e-4, 100)
    for panel in panels:
        panel.set_ylabel(r"$\ell_t - \inf\ell$")
    figures.shared_legend(figure)
    return figure

"""Losses above the infimum against steps: what arrives, how fast, and what does not."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAW = "law of one layer"
CASES = (
    "one layer",
    "one layer, huge start",
    "two layers, normal starts",
    "branch at zero, tanh",
    "open set, smooth gate",
)
PANELS = {
    "arrival": ("logistic cost and cross-entropy", "steps, in units of the certified"),
    "limits": ("limits of two layers, sorted", "share of normal starts"),
    "fit": ("square cost, near a fit", "steps, in units of the certified"),
}


def draw(table: Rows) -> "Figure":
    """Draw medians over networks, sorted limits, and fits."""
    figure, panels = figures.new_figure(12.6, 4.4, panels=(1, 3))
    for (name, (title, below)), panel in zip(PANELS.items(), panels, strict=True):
        rows = table.where(panel=name)
        steps = sorted(rows.levels("case"), key=len)  # 1, 8 and 64 times
        names = CASES if name == "arrival" else steps
        for case in names:
            some = rows.where(case=case)
            figures.band(
                panel,
                some.column("step"),
                some.values(),
                some.values("error"),
                style=figures.series_style(case, names),
                label=case,
            )
        figures.log_axis(panel, "y")
        panel.set_title(title)
        panel.set_xlabel(below)
    law = table.where(case=LAW)
    first = panels[0]
    first.plot(law.column("step"), law.values(), color="black", ls=":", label=LAW)
    figures.log_axis(first, "x")
    first.set_ylim(1e-4, 100)
    first.set_ylabel(r"$\ell_t - \inf\ell$")
    for panel in panels:
        figures.legend(panel)
    return figure

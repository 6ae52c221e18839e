"""Variances against depth, and responses along training, from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "residual": "shortcuts",
    "plain": "no shortcuts",
    "normalised": "shortcuts, batch norm",
}


def draw(table: Rows) -> "Figure":
    """Draw variances at the start, and responses by depth."""
    figure, (left, right) = figures.new_figure(7.6, 3.6, panels=(1, 2))
    names = list(LABELS)
    for kind in names:
        style = figures.series_style(kind, names)
        found = table.where(quantity="variance", kind=kind)
        theory = table.where(quantity="closed_form", kind=kind)
        figures.band(
            left,
            found.column("units"),
            found.values(),
            found.values("spread"),
            style=style,
            label=LABELS[kind],
            line=False,
        )
        figures.curve(left, theory.column("units"), theory.values(), style=style)
    left.set_title("at the start")
    left.set_xlabel("residual units")
    left.set_ylabel(r"$\log_{10}$ output variance")
    figures.legend(left)
    responses = table.where(quantity="response")
    depths = [str(depth) for depth in responses.levels("depth")]
    for name in depths:
        mine = responses.where(depth=int(name))
        figures.band(
            right,
            mine.column("epoch"),
            mine.values(),
            mine.values("spread"),
            style=figures.series_style(name, depths),
            label=f"depth {name}",
        )
    right.set_title("along training")
    right.locator_params(axis="x", integer=True)
    right.set_xlabel("epoch")
    right.set_ylabel("mean response of a branch")
    figures.legend(right)
    return figure

"""Second moments over their closed forms."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "variance": "energy",
    "covariance": "pairs of energies",
    "slope_square": "gradient, $v'$",
    "bend_square": "Hessian, $v''$",
    "radial_square": "radial, $v'+v''$",
}


def draw(table: Rows) -> "Figure":
    """Draw every second moment over its closed form, a series a mixture."""
    figure, (panel,) = figures.new_figure(6.6, 4.0)
    mixtures = table.levels("mixture")
    width = max(table.levels("width"))
    places = {name: place for place, name in enumerate(LABELS)}
    for mixture in mixtures:
        style = figures.series_style(mixture, mixtures)
        for printed in (False, True):
            rows = table.where(mixture=mixture, width=width, printed=printed)
            figures.band(
                panel,
                [places[row["quantity"]] for row in rows],
                rows.values(),
                rows.values("error"),
                style=style,
                label=None if printed else mixture,
                bound=[printed] * len(rows),
                kind="bars",
                line=False,
            )
    figures.rule(panel, 1.0, label="closed form")
    panel.set_xticks(list(places.values()), list(LABELS.values()))
    panel.set_ylabel("measured over closed form")
    figures.legend(panel)
    return figure

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
KINDS = {
    "three": "order_three",
    "two-three": "orders_two_three",
    "two-four": "orders_two_four",
}
NAMES = {
    "three": "order 3",
    "two-three": "orders 2 and 3",
    "two-four": "orders 2 and 4",
}
APART = 0.16


def draw(table: Rows) -> "Figure":
    """Draw every second moment over its closed form, a series a mixture."""
    figure, (panel,) = figures.new_figure(6.6, 4.0)
    mixtures = [name for name in KINDS if name in table.levels("mixture")]
    width = max(table.levels("width"))
    places = {name: place for place, name in enumerate(LABELS)}
    for shift, mixture in enumerate(mixtures, start=-1):
        style = figures.kind_style(KINDS[mixture])
        for printed in (False, True):
            rows = table.where(mixture=mixture, width=width, printed=printed)
            figures.band(
                panel,
                [places[row["quantity"]] + APART * shift for row in rows],
                rows.values(),
                rows.values("error"),
                style=style,
                label=None if printed else NAMES[mixture],
                bound=[printed] * len(rows),
                means="hollow: as printed",
                kind="bars",
                line=False,
            )
    figures.rule(panel, 1.0, label="closed form")
    panel.set_xticks(list(places.values()), list(LABELS.values()))
    panel.set_ylabel("measured over closed form")
    figures.legend(panel)
    return figure

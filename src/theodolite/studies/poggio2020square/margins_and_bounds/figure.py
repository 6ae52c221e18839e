"""Both sides of the bound against the decay that sets the norm."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {
    "bound": "bound",
    "fixed_bound": "tighter_bound",
    "ramp": "training_samples",
    "held_error": "held_out",
}
LABELS = {
    "bound": "bound, union over norms",
    "fixed_bound": "bound, norm known beforehand",
    "ramp": "ramp loss, training",
    "held_error": "error, held out",
}


def draw(table: Rows) -> "Figure":
    """Draw the terms of the inequality."""
    figure, (panel,) = figures.new_figure(6.0, 3.8)
    for name in LABELS:
        rows = table.where(quantity=name)
        figures.band(
            panel,
            rows.column("decay"),
            rows.values(),
            rows.values("spread"),
            style=figures.kind_style(KINDS[name]),
            label=LABELS[name],
            kind="bars",
        )
    figures.rule(panel, 1.0, label="says nothing above")
    figures.log_axis(panel, "x")
    figures.count_axis(panel, "y")
    panel.set_xlabel(r"weight decay $\lambda$")
    panel.set_ylabel("error and its bounds")
    figures.legend(panel)
    return figure

"""The force on the norm against the ratio of the two gradients."""

from theodolite import figures
from theodolite.core import Rows

LABELS = {"norm": "random losses", "opposite": "opposite gradients"}
KINDS = {"norm": "beside", "opposite": "opposite_gradients"}
SHOWN = {
    "norm": ("norm",),
    "opposite": ("deep_opposite", "middle_opposite", "shallow_opposite"),
}


def draw(table: Rows) -> "figures.Figure":
    """Draw every loss as a point over the least force that its ratio allows."""
    figure, (panel,) = figures.new_figure(6.0, 3.8)
    for name, kinds in SHOWN.items():
        rows = table.where(lambda row, k=kinds: row.get("kind") in k)
        figures.row_band(
            panel,
            rows,
            "ratio",
            error=None,
            style=figures.kind_style(KINDS[name]),
            label=LABELS[name],
            line=False,
            marker_size=3.5,
        )
    bound = table.where(quantity="envelope")
    style = figures.kind_style("opposite_gradients")
    figures.row_curve(panel, bound, "ratio", style=style, label="least force")
    figures.reference_line(panel, 0.0)
    figures.log_axis(panel, "x")
    panel.set_xlabel(r"$\|g_p\| \,/\, \|g_m\|$")
    panel.set_ylabel(r"force on $C$, over $m\|g_m\|^2 + p\|g_p\|^2$")
    figures.legend(panel)
    return figure

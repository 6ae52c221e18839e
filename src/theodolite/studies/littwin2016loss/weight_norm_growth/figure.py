"""Figure 1(e) from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {"radial": "measured", "tangential": "beside"}
PARTS = {
    "radial": r"along the weights, $-2\mu\,w^T g$",
    "tangential": r"second order, $\mu^2\|g\|^2$",
}


def draw(table: Rows) -> "Figure":
    """Draw the norm over its start, and what its square was changed by."""
    figure, (norms, parts) = figures.new_figure(7.0, 3.8, panels=(1, 2))
    scales = table.levels("init_scale")
    for scale in scales:
        rows = table.where(quantity="norm", init_scale=scale)
        figures.band(
            norms,
            rows.column("step"),
            rows.values(),
            rows.values("spread"),
            style=figures.ordered_style(scale, scales),
            label=f"start × {scale:g}",
        )
    figures.rule(norms, 1.0)
    for quantity, label in PARTS.items():
        rows = table.where(quantity=quantity, init_scale=scales[-1])
        figures.band(
            parts,
            rows.column("step"),
            rows.values(),
            rows.values("spread"),
            style=figures.kind_style(KINDS[quantity]),
            label=label,
        )
    figures.rule(parts, 0.0)
    for panel in (norms, parts):
        figures.count_axis(panel)
        panel.set_xlabel("step")
    norms.set_ylabel(r"$\|w\|$ over its start")
    parts.set_ylabel(r"change of $\|w\|^2$ over its start")
    figures.shared_legend(figure)
    return figure

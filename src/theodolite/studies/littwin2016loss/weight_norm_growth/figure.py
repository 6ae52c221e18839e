"""Figure 1(e) from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = {
    "radial": r"along the weights, $-2\mu\,w^T g$",
    "tangential": r"second order, $\mu^2\|g\|^2$",
}


def draw(table: Rows) -> "Figure":
    """Draw the norm over its start, and what its square was changed by."""
    figure, (norms, parts) = figures.new_figure(8.6, 3.6, panels=(1, 2))
    names = [f"{scale:g}" for scale in table.levels("init_scale")]
    for name in names:
        rows = table.where(quantity="norm", init_scale=float(name))
        figures.band(
            norms,
            rows.column("step"),
            rows.values(),
            rows.values("spread"),
            style=figures.series_style(name, names),
            label=f"start × {name}",
        )
    figures.rule(norms, 1.0)
    for quantity, label in PARTS.items():
        rows = table.where(quantity=quantity, init_scale=table.levels("init_scale")[-1])
        figures.band(
            parts,
            rows.column("step"),
            rows.values(),
            rows.values("spread"),
            style=figures.series_style(quantity, list(PARTS)),
            label=label,
        )
    figures.rule(parts, 0.0)
    for panel in (norms, parts):
        panel.set_xscale("symlog", linthresh=1)
        panel.set_xlim(left=0)
        panel.set_xlabel("step")
        figures.legend(panel)
    norms.set_ylabel(r"$\|w\|$ over its start")
    parts.set_ylabel(r"change of $\|w\|^2$ over its start")
    return figure

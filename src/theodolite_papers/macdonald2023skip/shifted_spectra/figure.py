"""Figures 1 and 2 from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {"chain": "Chain", "res": "Res", "average": "ResAvg"}
KINDS = {"chain": "chain", "res": "residual", "average": "average"}
MATRICES = {"0": "$A$", "1": "$I + A$"}
MATRIX_KINDS = {"0": "original", "1": "added_identity"}
CHANGES = {
    "blocks": "factor on the mean singular value\nof the two blocks",
    "composite": "factor on the mean singular value\nto the scores",
    "speed": "loss without the addition\nover that with it",
}


def draw_linear(table: Rows) -> "Figure":
    """Draw shares of both spectra, and the laws of the limit."""
    figure, (panel,) = figures.new_figure(5.4, 3.8)
    for name, label in MATRICES.items():
        style = figures.kind_style(MATRIX_KINDS[name])
        rows = table.where(quantity="matrix_share", shift=float(name))
        law = table.where(quantity="limit", shift=float(name))
        figures.band(
            panel,
            rows.column("share"),
            rows.values(),
            rows.values("spread"),
            style=style,
            label=label,
            line=False,
        )
        figures.curve(
            panel, law.column("share"), law.values(), style=style, means="limit law"
        )
    panel.set_xlabel("tenth of the singular values, the least first")
    panel.set_ylabel("mean singular value")
    panel.set_ylim(bottom=0)
    figures.legend(panel)
    return figure


def draw_networks(table: Rows) -> "Figure":
    """Draw both spectra and the losses of the three networks."""
    figure, panels = figures.new_figure(7.0, 3.6, panels=(1, 3))
    composite, blocks, losses = panels
    for kind, label in LABELS.items():
        style = figures.kind_style(KINDS[kind])
        for panel, metric in ((composite, "composite"), (blocks, "blocks")):
            rows = table.where(quantity="share", metric=metric, kind=kind)
            figures.band(
                panel,
                rows.column("share"),
                rows.values(),
                rows.values("spread"),
                style=style,
                label=label,
            )
        rows = table.where(quantity="loss", kind=kind)
        figures.band(
            losses,
            rows.column("step"),
            rows.values(),
            rows.values("spread"),
            style=style,
            label=label,
        )
    for panel, name in ((composite, "to the scores"), (blocks, "of the two blocks")):
        panel.set_xlabel("tenth of the\nsingular values")
        panel.set_ylabel(f"mean singular value\n{name}")
    figures.log_axis(blocks, "y")
    figures.power_axis(losses, "y")
    losses.set_xlabel("step")
    losses.set_ylabel("loss")
    figures.shared_legend(figure)
    return figure


def draw_starts(table: Rows) -> "Figure":
    """Draw what each addition changes from each start."""
    figure, panels = figures.new_figure(7.0, 4.4, panels=(1, 3))
    names = [kind for kind in LABELS if kind in table.levels("addition")]
    for panel, (quantity, label) in zip(panels, CHANGES.items(), strict=True):
        for kind in names:
            rows = table.where(quantity=quantity, addition=kind)
            figures.band(
                panel,
                rows.column("place"),
                rows.values(),
                rows.values("spread"),
                style=figures.kind_style(KINDS[kind]),
                label=f"adding what makes {LABELS[kind]}",
                kind="bars",
                line=False,
            )
        figures.reference_line(panel, 0.0)
        starts = {row["place"]: row["start"] for row in table}
        panel.set_xticks(list(starts), list(starts.values()), rotation=60, ha="right")
        figures.power_axis(panel, "y")
        panel.set_ylabel(label)
    figures.shared_legend(figure)
    return figure

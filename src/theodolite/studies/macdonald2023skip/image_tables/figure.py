"""Figures 3 and 4, and table 1, from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.macdonald2023skip.shared.image_figure import NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_cells(table: Rows) -> "Figure":
    """Draw final loss and test error by rate, printed and ours side by side."""
    figure, panels = figures.new_figure(7.0, 3.2, panels=(1, 2))
    for panel, cell in zip(panels, ("loss", "accuracy"), strict=True):
        _panel(panel, table.where(cell=cell))
    figures.log_axis(panels[0], "y")
    figures.log_axis(panels[1], "y", ticks=(5, 10, 20, 50))
    panels[0].set_ylabel("training loss of the last epoch")
    panels[1].set_ylabel("test error (%)")
    figures.shared_legend(figure)
    return figure


def _panel(panel: "Axes", rows: Rows) -> None:
    rates = rows.levels("rate")
    series = [(word, scale) for word in ("printed", "ours") for scale in NAMES]
    for place, (word, scale) in enumerate(series):
        mine = rows.where(added_identity=scale, source=word)
        shift = 0.14 * (place - 1.5)
        figures.band(
            panel,
            [rates.index(rate) + shift for rate in mine.column("rate")],
            mine.values(),
            mine.values("spread"),
            style=figures.kind_style(NAMES[scale]),
            label=NAMES[scale] if word == "ours" else None,
            bound=[word == "printed"] * len(mine),
            means="hollow: as printed",
            kind="bars",
            line=False,
        )
    panel.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    panel.set_xlabel("rate")

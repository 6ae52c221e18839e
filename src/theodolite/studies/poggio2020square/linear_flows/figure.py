"""Norms that are reached without decay, by where the flow starts."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.poggio2020square.linear_flows.config import STARTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(table: Rows) -> "Figure":
    """Draw the norm that is reached over the least one, dataset by dataset."""
    figure, (panel,) = figures.new_figure(6.0, 3.4)
    names = [f"{start:g}" for start in STARTS]
    for start, name in enumerate(names):
        style = figures.series_style(name, names)
        flow, descent = (
            table.where(road=road, start=start) for road in ("flow", "descent")
        )
        figures.curve(panel, flow.column("trial"), flow.values(), style=style)
        figures.band(
            panel,
            descent.column("trial"),
            descent.values(),
            descent.values("error"),
            style=style,
            label=rf"$\rho_0 = {name}$",
            line=False,
        )
    figures.rule(panel, 1.0)
    panel.set_xlabel("dataset")
    panel.set_ylabel(r"$|\rho|$ over the least norm")
    figures.legend(panel)
    return figure

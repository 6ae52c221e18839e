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
    for norm in sorted(STARTS):
        style = figures.ordered_style(norm, sorted(STARTS))
        flow, descent = (
            table.where(road=road, start=STARTS.index(norm))
            for road in ("flow", "descent")
        )
        figures.band(
            panel,
            flow.column("trial"),
            flow.values(),
            style=style,
            bound=[True] * len(flow),
            means="hollow: flow",
            line=False,
            marker_size=9.0,
        )
        figures.band(
            panel,
            descent.column("trial"),
            descent.values(),
            descent.values("error"),
            style=style,
            label=rf"$\rho_0 = {norm:g}$, descent",
            line=False,
        )
    figures.rule(panel, 1.0)
    panel.set_xlabel("dataset")
    panel.set_ylabel(r"$|\rho|$ over the least norm")
    figures.legend(panel)
    return figure

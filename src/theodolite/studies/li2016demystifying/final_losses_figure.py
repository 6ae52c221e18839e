"""Figures 7 and 8 from saved rows."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.li2016demystifying.final_losses_judging import (
    NAMES,
    Losses,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {
    "excess": r"$\log_{10}$(final loss − optimal loss)",
    "final_loss": r"$\log_{10}$ final loss",
}
# Networks that the paper leaves out of figure 8, and why.
BESIDE = {
    "one_shortcut": "1-shortcut (linear),\nnot in the paper",
    "three_shortcut": "3-shortcut,\nnot in the paper",
}
# Markers on a line of many rates.
MARKERS = 8


def draw(predicted: Rows, measured: Rows) -> "Figure":
    """Draw losses and rates against depth."""
    return _draw(_losses(predicted, measured))


def draw_by_rate(predicted: Rows, measured: Rows) -> "Figure":
    """Draw the mean loss against the rate, at three depths."""
    losses = _losses(predicted, measured)
    names = [name for name in _networks(losses) if not _beside(losses, name)]
    depths = losses.depths(*names)
    shown = [depths[0], depths[len(depths) // 2], depths[-1]]
    figure, panels = figures.new_figure(7.4, 3.0, panels=(1, 3), share_y=True)
    for panel, depth in zip(panels, shown, strict=True):
        for place, name in enumerate(names):
            rows = losses.means(name, depth)
            values = rows.values()
            drawn = figures.band(
                panel,
                10 ** rows.values("rate"),
                np.log10(values),
                rows.values("error") / values / np.log(10),
                style=figures.series_style(name, list(NAMES)),
                label=NAMES[name],
            )
            # Rates are dense: a few markers, no two series at the same rates.
            every = max(len(rows) // MARKERS, 1)
            drawn.set_markevery((place % every, every))
        figures.log_axis(panel, "x")
        panel.set_title(f"depth {depth}")
        panel.set_xlabel("learning rate")
        _references(losses, panel)
    panels[0].set_ylabel(AXES[losses.quantity])
    figures.legend(panels[-1], outside=True)
    return figure


def _losses(predicted: Rows, rows: Rows) -> Losses:
    kind = "excess" if len(rows.where(quantity="excess")) else "final_loss"
    return Losses(predicted, rows, kind)


def _networks(losses: Losses) -> list[str]:
    found = losses.rows.levels("network")
    return [name for name in NAMES if name in found]


def _beside(losses: Losses, name: str) -> bool:
    """Whether a network is not one of the paper's figure."""
    return losses.quantity == "final_loss" and name in BESIDE


def _draw(losses: Losses) -> "Figure":
    figure, (left, right) = figures.new_figure(7.4, 3.4, panels=(1, 2))
    names = _networks(losses)
    # Depths of networks beside are too close to the others for a tick each.
    main = [name for name in names if not _beside(losses, name)]
    everywhere = sorted({d for name in main for d in losses.depths(name)})
    for name in names:
        style, label = figures.series_style(name, list(NAMES)), NAMES[name]
        if _beside(losses, name):
            style, label = replace(style, line="dashed"), BESIDE[name]
        depths = losses.depths(name)
        means = [losses.mean(name, depth) for depth in depths]
        figures.band(
            left,
            depths,
            [mean.value for mean in means],
            [mean.error or 0.0 for mean in means],
            style=style,
        )
        rates = [losses.rate(name, depth) for depth in depths]
        figures.band(
            right,
            depths,
            [rate.value for rate in rates],
            [rate.error or 0.0 for rate in rates],
            style=style,
            label=label,
            bound=[losses.flat(name, d) for d in depths],
        )
    for panel in (left, right):
        figures.log_axis(panel, "x", base=2, ticks=everywhere)
        panel.set_xlabel("depth (weight matrices)")
    left.set_ylabel(AXES[losses.quantity])
    right.set_ylabel(r"$\log_{10}$ best learning rate")
    _references(losses, left)
    figures.legend(right, outside=True)
    return figure


def _references(losses: Losses, panel: "Axes") -> None:
    """Mark what a network that outputs zero ends with."""
    zero = losses.reference(f"zero_map_{losses.quantity}")
    figures.rule(panel, float(np.log10(zero)))

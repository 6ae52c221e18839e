"""The phase diagram from saved rows."""

from typing import TYPE_CHECKING

import numpy as np

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.li2016demystifying.phases import (
    DIVERGES,
    KINDS,
    NAMES,
    STUCK,
    TRAINS,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {STUCK: "#C9CDD2", TRAINS: "#009E73", DIVERGES: "#D55E00"}
_KINDS = {
    "plain": "no shortcut",
    "one_shortcut": "1-shortcut",
    "two_shortcut": "2-shortcut",
    "three_shortcut": "3-shortcut",
}


def draw(predicted: Rows, measured: Rows) -> "Figure":
    """Draw a panel for each family, depth and shortcut length."""
    ends = measured.where(quantity="measured")
    families, depths = ends.levels("family"), ends.levels("depth")
    columns = [(family, depth) for family in families for depth in depths]
    figure, panels = figures.new_figure(
        1.5 + 1.45 * len(columns), 6.6, panels=(len(KINDS), len(columns))
    )
    said = predicted.where(quantity="predicted")
    for number, panel in enumerate(panels):
        row, column = divmod(number, len(columns))
        kind = list(KINDS)[row]
        family, depth = columns[column]
        labels = {"family": family, "kind": kind, "depth": depth}
        _tiles(panel, ends.where(**labels), said.where(**labels))
        if row == 0:
            name = "linear" if family == "linear" else "ReLU"
            panel.set_title(f"{name}, depth {depth}")
        panel.tick_params(
            labelbottom=row == len(KINDS) - 1, labelleft=column == 0, length=2
        )
        if column == 0:
            panel.set_ylabel(f"{_KINDS[kind]}\ninitial scale")
        if row == len(KINDS) - 1:
            panel.set_xlabel("learning rate")
    _key(figure)
    return figure


def _tiles(panel: "Axes", ends: Rows, said: Rows) -> None:
    rates, scales = ends.levels("lr"), ends.levels("scale")
    found, foretold = (_majority(rows, rates, scales) for rows in (ends, said))
    from matplotlib.colors import ListedColormap

    colours = ListedColormap([_COLOURS[phase] for phase in sorted(_COLOURS)])
    panel.imshow(found, cmap=colours, vmin=0, vmax=2, aspect="auto", origin="lower")
    wrong = np.argwhere(found != foretold)
    panel.plot(
        wrong[:, 1],
        wrong[:, 0],
        linestyle="none",
        marker="x",
        color="black",
        markersize=3.2,
        markeredgewidth=0.8,
    )
    decades = [i for i, rate in enumerate(rates) if _whole(rate)]
    panel.set_xticks(
        decades, [f"$10^{{{round(np.log10(rates[i]))}}}$" for i in decades]
    )
    panel.set_yticks(range(len(scales)), [f"{scale:g}" for scale in scales])
    panel.grid(False)


def _majority(rows: Rows, rates: list[float], scales: list[float]) -> np.ndarray:
    counts = np.zeros((3, len(scales), len(rates)))
    for row in rows:
        place = scales.index(row["scale"]), rates.index(row["lr"])
        counts[int(row["value"]), place[0], place[1]] += 1
    return counts.argmax(axis=0)


def _whole(rate: float) -> bool:
    return abs(np.log10(rate) - round(np.log10(rate))) < 1e-6


def _key(figure: "Figure") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list = [
        Patch(color=_COLOURS[phase], label=NAMES[phase])
        for phase in (TRAINS, STUCK, DIVERGES)
    ]
    handles.append(
        Line2D(
            [],
            [],
            linestyle="none",
            marker="x",
            color="black",
            markersize=4,
            label="foretold otherwise",
        )
    )
    figure.legend(handles=handles, loc="outside lower center", ncols=4)

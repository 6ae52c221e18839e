"""One look per series name, the same in every figure of a study."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.core import unknown_name
from theodolite.figures.style import PALETTE

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("solid", "dashed", "dashdot", "dotted")


@dataclass(frozen=True)
class SeriesStyle:
    """Colour, marker and line of one series; each tells it apart on its own."""

    colour: str
    marker: str
    line: str

    def line_settings(self) -> dict[str, Any]:
        """Return the keyword arguments of ``Axes.plot`` for a line alone."""
        return {"color": self.colour, "linestyle": self.line}


def series_style(name: str, names: Sequence[str]) -> SeriesStyle:
    """Return the look of a series from its place among all names of the study.

    Pass the same ``names`` for every figure, also where only some are drawn: the
    look then never changes from one figure to the next.

    Args:
        name: Series to draw.
        names: All series of the study, in their one order.

    Example:
        >>> series_style("plain", ["residual", "plain"])
        SeriesStyle(colour='#D55E00', marker='s', line='solid')
    """
    if name not in names:
        raise unknown_name("series", name, names)
    place = list(names).index(name)
    colours = tuple(PALETTE.values())
    turn = place // len(colours)
    return SeriesStyle(
        colour=colours[place % len(colours)],
        # Shifted at each turn of the palette, so that no pair repeats for 49 series.
        marker=MARKERS[(place + turn) % len(MARKERS)],
        line=DASHES[turn % len(DASHES)],
    )

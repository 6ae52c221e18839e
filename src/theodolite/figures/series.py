"""One look per series: by its place among names, or by its rank in an order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from theodolite.core import unknown_name
from theodolite.figures.style import INK, PALETTE, PAPER

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("solid", "dashed", "dashdot", "dotted")
# Dark to light, and none of it a colour of the palette: readable on white and on dark
# paper, in order also where print is grey.
RAMP = ("#4E42AA", "#AC3F93", "#DD5560", "#EA9A3E")
_DARKER, _LIGHTER = 0.38, 0.42


@dataclass(frozen=True)
class SeriesStyle:
    """Colour, marker and line of one series; each tells it apart on its own."""

    colour: str
    marker: str
    line: str

    def line_settings(self) -> dict[str, Any]:
        """Return the keyword arguments of ``Axes.plot`` for a line alone."""
        return {"color": self.colour, "linestyle": self.line}

    def darker(self, marker: str, line: str | None = None) -> "SeriesStyle":
        """Return the look of a kin: a darker shade and another marker."""
        shade = mixed(self.colour, INK, _DARKER)
        return replace(self, colour=shade, marker=marker, line=line or self.line)

    def lighter(self, marker: str, line: str | None = None) -> "SeriesStyle":
        """Return the look of a kin: a lighter shade and another marker."""
        shade = mixed(self.colour, PAPER, _LIGHTER)
        return replace(self, colour=shade, marker=marker, line=line or self.line)


def series_style(name: str, names: Sequence[str]) -> SeriesStyle:
    """Return the look of a series from its place among all names of the study.

    For names that are no kinds of :func:`kind_style` and have no order. Pass the same
    ``names`` for every figure, also where only some are drawn: the look then never
    changes from one figure to the next.

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
        # Seven markers and eight colours: no pair repeats for 56 series.
        marker=MARKERS[place % len(MARKERS)],
        line=DASHES[turn % len(DASHES)],
    )


def ordered_style(value: Any, values: Sequence[Any]) -> SeriesStyle:
    """Return the look of a level of an ordered quantity, such as a depth, by its rank.

    Args:
        value: Level to draw.
        values: All levels, from the first to the last; pass those of the study also
            where only some are drawn.

    Example:
        >>> ordered_style(8, [2, 4, 8]).colour == RAMP[-1]
        True
    """
    levels = list(values)
    if value not in levels:
        raise unknown_name("level", str(value), [str(level) for level in levels])
    rank = levels.index(value)
    along = rank / max(len(levels) - 1, 1)
    return SeriesStyle(ramp_colour(along), MARKERS[rank % len(MARKERS)], "solid")


def ramp_colour(along: float) -> str:
    """Return the colour of the ramp at a place between 0 and 1."""
    place = along * (len(RAMP) - 1)
    low = min(int(place), len(RAMP) - 2)
    return mixed(RAMP[low], RAMP[low + 1], place - low)


def mixed(colour: str, other: str, share: float) -> str:
    """Return a colour with a share of another in it, both as ``#RRGGBB``."""
    pairs = [(int(colour[k : k + 2], 16), int(other[k : k + 2], 16)) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(a + share * (b - a)):02X}" for a, b in pairs)

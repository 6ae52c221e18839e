"""The style of every figure: settings, colours, and one style per series.

A series takes its look from its place among names, or from its rank in an order. The
user's own matplotlib settings change nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from theodolite.core import ConfigError, unknown_name

# Okabe & Ito (2008), Color universal design, without their yellow and black, which
# are lost on a white or a dark page, and two more, which colour-blind readers (red or
# green) distinguish from these six as well as the six from one another.
PALETTE = {
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "indigo": "#5B45D9",
    "brown": "#8C5A2B",
}

# Colours of no kind. A dark page replaces these four.
TEXT_COLOUR = "#2B2B2B"  # text, axes, measurements where there is only one kind
MUTED = "#737373"  # guides, laws and legend entries that describe all series
GRID = "#DDDDDD"
BACKGROUND = "#FFFFFF"

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("solid", "dashed", "dashdot", "dotted")
# Dark to light, apart from the palette, readable on white and on dark pages, and in
# order also in grey print.
RAMP = ("#4E42AA", "#AC3F93", "#DD5560", "#EA9A3E")
_DARKER, _LIGHTER = 0.38, 0.42

# A page shows a figure of this many inches at its size, and wider ones smaller.
WIDEST = 7.0

_SETTINGS: dict[Any, Any] = {
    # DejaVu comes with matplotlib, so text has the same shape everywhere; in SVG it
    # becomes outlines, in PDF an embedded font of type 3, which stays text and is
    # written in a third of the time of type 42.
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "mathtext.fontset": "dejavusans",
    "svg.fonttype": "path",
    "svg.hashsalt": "theodolite",
    "pdf.fonttype": 3,
    "figure.facecolor": BACKGROUND,
    "savefig.facecolor": BACKGROUND,
    "axes.facecolor": "none",
    "figure.dpi": 100.0,
    "savefig.dpi": 200.0,
    "axes.prop_cycle": cycler(color=list(PALETTE.values())),
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8.0,
    "axes.labelpad": 5.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.edgecolor": TEXT_COLOUR,
    "axes.labelcolor": TEXT_COLOUR,
    "axes.titlecolor": TEXT_COLOUR,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.xmargin": 0.04,
    "axes.ymargin": 0.08,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": TEXT_COLOUR,
    "xtick.color": TEXT_COLOUR,
    "ytick.color": TEXT_COLOUR,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.title_fontsize": 8.5,
    "legend.handlelength": 2.2,
    "legend.labelcolor": TEXT_COLOUR,
    "image.cmap": "cividis",
}


@contextmanager
def house_style() -> Iterator[None]:
    """A context with the style of all figures; it restores matplotlib's settings.

    The user's matplotlibrc has no effect, so that a figure is the same everywhere.
    Titles and legends take their look when they are added, so the whole drawing
    belongs inside: put ``@house_style()`` above the function that draws.

    Example:
        >>> with house_style():
        ...     matplotlib.rcParams["axes.spines.top"]
        False
    """
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def new_figure(
    width: float = 6.6,
    height: float = 3.6,
    *,
    panels: tuple[int, int] = (1, 1),
    share_x: bool = False,
    share_y: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, without touching pyplot's global state.

    Args:
        width: Width in inches; reports show up to ``WIDEST`` at full size.
        height: Height in inches.
        panels: Rows and columns of panels.
        share_x: Whether all panels have one horizontal scale.
        share_y: Whether all panels have one vertical scale.

    Returns:
        The figure, and its axes in reading order.

    Example:
        >>> figure, (left, right) = new_figure(panels=(1, 2))
        >>> len(figure.axes)
        2
    """
    rows, columns = panels
    if not (width > 0 and height > 0 and rows >= 1 and columns >= 1):
        raise ConfigError(
            f"a figure of {width} by {height} inches with {rows} by {columns} panels "
            "cannot be drawn: pass positive sizes, for instance 6.6 by 3.6"
        )
    with house_style():
        figure = Figure(figsize=(width, height), layout="constrained")
        grid = figure.subplots(
            rows, columns, sharex=share_x, sharey=share_y, squeeze=False
        )
    return figure, list(grid.flat)


@dataclass(frozen=True)
class SeriesStyle:
    """Colour, marker and line of one series; each alone identifies it."""

    colour: str
    marker: str
    line: str

    def darker(self, marker: str, line: str | None = None) -> "SeriesStyle":
        """Return a related style: a darker shade and another marker."""
        shade = _mix(self.colour, TEXT_COLOUR, _DARKER)
        return replace(self, colour=shade, marker=marker, line=line or self.line)

    def lighter(self, marker: str, line: str | None = None) -> "SeriesStyle":
        """Return a related style: a lighter shade and another marker."""
        shade = _mix(self.colour, BACKGROUND, _LIGHTER)
        return replace(self, colour=shade, marker=marker, line=line or self.line)


def series_style(name: str, names: Sequence[str]) -> SeriesStyle:
    """Return the style of a series by its position among all names of the study.

    For names that are no kinds of :func:`kind_style` and have no order. Pass the same
    ``names`` for every figure, even if it draws only some, so that the look of a
    series never changes.

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
        marker=_MARKERS[place % len(_MARKERS)],
        line=_DASHES[turn % len(_DASHES)],
    )


def ordered_style(value: Any, values: Sequence[Any]) -> SeriesStyle:
    """Return the style of a level of an ordered quantity, such as a depth.

    Args:
        value: Level to draw.
        values: All levels of the study, in order, even if only some are drawn.

    Example:
        >>> ordered_style(8, [2, 4, 8]).colour == RAMP[-1]
        True
    """
    levels = list(values)
    if value not in levels:
        raise unknown_name("level", str(value), [str(level) for level in levels])
    rank = levels.index(value)
    along = rank / max(len(levels) - 1, 1)
    return SeriesStyle(ramp_colour(along), _MARKERS[rank % len(_MARKERS)], "solid")


def ramp_colour(along: float) -> str:
    """Return the colour of the ramp at a position between 0 and 1."""
    place = along * (len(RAMP) - 1)
    low = min(int(place), len(RAMP) - 2)
    return _mix(RAMP[low], RAMP[low + 1], place - low)


def _mix(colour: str, other: str, share: float) -> str:
    """Return a colour with a share of another in it, both as ``#RRGGBB``."""
    pairs = [(int(colour[k : k + 2], 16), int(other[k : k + 2], 16)) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(a + share * (b - a)):02X}" for a, b in pairs)

"""How every figure looks, whatever the user's own matplotlib settings are."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from theodolite.core import ConfigError

# Okabe & Ito (2008), Color universal design, without their yellow and black, which
# are lost on a white and on a dark page; and two that stay as far from these six to
# eyes without red or green cones as the six from one another.
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

# What belongs to no kind. A page in the dark gives these four colours others.
INK = "#2B2B2B"  # text, axes, what was measured where there is but one kind
MUTED = "#737373"  # guides, laws and entries of a legend that speak for all series
GRID = "#DDDDDD"
PAPER = "#FFFFFF"

# A page shows a figure of this many inches at its size, and wider ones smaller.
WIDEST = 7.0

_SETTINGS: dict[Any, Any] = {
    # DejaVu comes with matplotlib, so text has the same shape everywhere; in SVG it
    # becomes outlines, in PDF an embedded font of type 3, which is text still and takes
    # a third of the time that type 42 is cut to size in.
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "mathtext.fontset": "dejavusans",
    "svg.fonttype": "path",
    "svg.hashsalt": "theodolite",
    "pdf.fonttype": 3,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
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
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.xmargin": 0.04,
    "axes.ymargin": 0.08,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.title_fontsize": 8.5,
    "legend.handlelength": 2.2,
    "legend.labelcolor": INK,
    "image.cmap": "cividis",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style, then leave matplotlib's settings as they were.

    Settings of the user's own matplotlibrc do not show through, so that a figure
    is the same wherever it is drawn. Titles and legends take their look when they
    are added, so all of a drawing belongs inside; ``@house_style()`` above the
    function that draws does that.

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

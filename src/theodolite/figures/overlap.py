"""Series that lie under others, and how they are made to show."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

from theodolite.figures.geometry import has_marker, is_joined, points_of, shown
from theodolite.figures.meanings import NEUTRAL, is_hollow, meaning
from theodolite.figures.style import GRID

# Pixels by which two marks are told apart, and the share of a series under another.
_APART, _HIDDEN = 2.0, 0.9
# Points by which a marker and a line show on either side of those over them.
_RIM, _EDGE = 3.2, 2.2
_CAPS = ("_", "|")  # ends of error bars


def uncover(panel: Axes) -> None:
    """Let series that others lie over show as a rim around these."""
    for one, over in hidden(panel):
        if has_marker(one):
            one.set_markersize(over.get_markersize() + _RIM)
        if is_joined(one):
            one.set_linewidth(over.get_linewidth() + _EDGE)


def hidden(panel: Axes) -> Iterator[tuple[Line2D, Line2D]]:
    """Yield each series that lies under others with the widest, uppermost first."""
    order = sorted(series_of(panel), key=lambda one: one.get_zorder())
    for place in reversed(range(len(order))):
        above = [one for one in order[place + 1 :] if _covers(one, order[place])]
        if above:  # the widest, which shows around the others by now
            yield order[place], max(above, key=lambda one: one.get_markersize())


def series_of(panel: Axes) -> Iterator[Line2D]:
    """Yield the lines that show data: no rules, frames or ends of error bars."""
    for one in panel.lines:
        if not shown(one) or one.get_marker() in _CAPS or not len(points_of(one)):
            continue
        if one.get_markevery() == [] and not is_joined(one):
            continue  # all its points are hollow, and in a line of their own
        plain = colour_of(one) in {*NEUTRAL, GRID.lower()} and not has_marker(one)
        if not plain and one.get_label() != "_decoration":
            yield one


def colour_of(line: Line2D) -> str:
    """Return the colour of a line as ``#rrggbb``."""
    return to_hex(line.get_color()).lower()


def _covers(over: Line2D, under: Line2D) -> bool:
    """Whether one series lies over all of another, which is no wider than it."""
    if has_marker(over) != has_marker(under) or is_joined(over) != is_joined(under):
        return False
    if is_hollow(over) or over.is_dashed() or meaning(under) or meaning(over):
        return False
    if has_marker(under) and under.get_markersize() > over.get_markersize() + 1.5:
        return False
    if not has_marker(under) and under.get_linewidth() > over.get_linewidth() + 1.0:
        return False
    below, above = points_of(under), points_of(over)
    gaps = np.abs(below[:, None] - above[None]).max(axis=2).min(axis=1)
    return bool(np.mean(gaps < _APART) >= _HIDDEN)

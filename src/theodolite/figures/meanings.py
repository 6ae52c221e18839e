"""What a mark means whatever its series: kept on the mark, told by the legend."""

from collections.abc import Iterable

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from theodolite.figures.style import INK, MUTED, PAPER

# Matplotlib leaves labels that begin so out of its legends.
_PREFIX = "_means:"
NEUTRAL = frozenset({INK.lower(), MUTED.lower()})


def set_meaning(mark: Line2D, means: str | None) -> None:
    """Let a mark mean something that a legend says once for all series."""
    if means is not None:
        mark.set_label(_PREFIX + means)


def meaning(mark: Artist) -> str | None:
    """Return what a mark means whatever its series, if it was told."""
    label = str(mark.get_label())
    return label.removeprefix(_PREFIX) if label.startswith(_PREFIX) else None


def meant(panels: Iterable[Axes]) -> list[Line2D]:
    """Return an entry of a legend for each meaning in the panels, in muted ink."""
    entries: dict[str, Line2D] = {}
    for panel in panels:
        for mark in panel.lines:
            told = meaning(mark)
            if told is not None and told not in entries:
                entries[told] = _entry(mark, told)
    return list(entries.values())


def is_hollow(mark: Line2D) -> bool:
    """Whether the markers of a line are open."""
    return str(mark.get_markerfacecolor()).lower() == PAPER.lower()


def _entry(mark: Line2D, told: str) -> Line2D:
    """Return a mark without data like another, whose marker says nothing of series."""
    marker = mark.get_marker()
    series = marker not in ("None", "none", "", None, "x")
    entry = Line2D([], [], color=MUTED, label=told)
    entry.set_linestyle(mark.get_linestyle())
    entry.set_linewidth(mark.get_linewidth())
    if mark.is_dashed():
        entry.set_linestyle((0, (4, 2)))
    entry.set_marker("o" if series else str(marker))
    entry.set_markersize(mark.get_markersize())
    entry.set_markeredgewidth(mark.get_markeredgewidth())
    if is_hollow(mark):
        entry.set_markerfacecolor(PAPER)
    return entry

"""Rules about marks: legends, colours, and series that one cannot see."""

from collections.abc import Iterable, Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from theodolite.figures.geometry import (
    covered,
    has_marker,
    is_joined,
    points_of,
)
from theodolite.figures.kinds import KINDS
from theodolite.figures.meanings import NEUTRAL, is_hollow, meaning
from theodolite.figures.overlap import colour_of, hidden, series_of
from theodolite.figures.series import ramp_colour
from theodolite.figures.style import GRID, PALETTE, PAPER

# Colours that the eye keeps apart in one panel, besides a ramp.
_MOST_COLOURS = 7
# Pixels at 100 an inch by which two marks are told apart.
_APART = 2.0
_RAMP = np.array(
    [
        [int(ramp_colour(k / 300)[place : place + 2], 16) for place in (1, 3, 5)]
        for k in range(301)
    ]
)
_OF_KINDS = {look.colour.lower() for look in KINDS.values()} - NEUTRAL
_KNOWN = _OF_KINDS | NEUTRAL | {one.lower() for one in (GRID, PAPER, *PALETTE.values())}


def legends_over_data(figure: Figure) -> list[str]:
    """A legend lies over nothing that its panel, or any panel, shows."""
    found = []
    for panel in figure.axes:
        one = panel.get_legend()
        if one is not None:
            under = covered(panel, one.get_window_extent())
            found += [f"{_name(panel)}: over {kind}" for kind in _kinds_of(under)]
    for one in figure.legends:
        box = one.get_window_extent()
        found += [
            f"{_name(panel)}: below the legend of the figure"
            for panel in figure.axes
            if panel.get_visible() and box.overlaps(panel.get_window_extent())
        ]
    return found


def unexplained_marks(figure: Figure) -> list[str]:
    """Where a panel has several looks, a legend of the figure has each of them."""
    entries = [_look(one) for one in _entries(figure)]
    found = []
    for panel in figure.axes:
        looks = _told_apart({_look(one) for one in series_of(panel)})
        if len(looks) > 1:
            told = sorted(map(_said, (x for x in looks if not _explained(x, entries))))
            found += [f"{_name(panel)}: no legend has {words}" for words in told]
    return found


def hidden_series(figure: Figure) -> list[str]:
    """No series lies wholly under one that is drawn after it."""
    return [
        f"{_name(panel)}: {_told(one)} is hidden under {_told(over)}"
        for panel in figure.axes
        for one, over in hidden(panel)
    ]


def unmarked_ends(figure: Figure) -> list[str]:
    """A series that leaves its panel has a mark where it does."""
    found = []
    for panel in figure.axes:
        ended = {colour_of(one) for one in panel.lines if one.get_marker() == "x"}
        for one in series_of(panel):
            if _leaves(panel, one) and colour_of(one) not in ended:
                found.append(f"{_name(panel)}: {_told(one)} leaves the panel unmarked")
    return found


def strange_colours(figure: Figure) -> list[str]:
    """Every colour of a line is an ink, that of a kind, of a palette or of the ramp."""
    return [
        f"{_name(panel)}: {_told(one)} has the colour {colour_of(one)}"
        for panel in figure.axes
        for one in series_of(panel)
        if colour_of(one) not in _KNOWN and not _on_ramp(colour_of(one))
    ]


def many_colours(figure: Figure) -> list[str]:
    """A panel has no more colours of kinds than the eye keeps apart."""
    found = []
    for panel in figure.axes:
        colours = {colour_of(one) for one in series_of(panel)} - NEUTRAL
        kinds = [one for one in colours if not _on_ramp(one)]
        if len(kinds) > _MOST_COLOURS:
            found.append(
                f"{_name(panel)}: {len(kinds)} colours, wanted {_MOST_COLOURS}"
            )
    return found


def shared_colours(figures: Iterable[Figure]) -> list[str]:
    """Return colours of kinds with several markers, where each kind has one."""
    markers: dict[str, set[str]] = {}
    for figure in figures:
        for panel in figure.axes:
            for one in panel.lines:
                if colour_of(one) in _OF_KINDS and has_marker(one) and not meaning(one):
                    markers.setdefault(colour_of(one), set()).add(str(one.get_marker()))
    return [
        f"{colour} has the markers {', '.join(sorted(found))}"
        for colour, found in markers.items()
        if len(found) > 1
    ]


_Look = tuple[str, str, bool, bool]


def _look(line: Line2D) -> _Look:
    """Return colour, marker, whether it is hollow, and whether the line is dashed."""
    marker = str(line.get_marker()) if has_marker(line) else ""
    dashed = is_joined(line) and line.is_dashed()
    return (colour_of(line), marker, bool(marker) and is_hollow(line), dashed)


def _told_apart(looks: set[_Look]) -> set[_Look]:
    """Return looks but for plain lines that go with markers of their colour."""
    marked = {colour for colour, marker, hollow, _ in looks if marker and not hollow}
    return {look for look in looks if look[0] not in marked or any(look[1:])}


def _explained(look: _Look, entries: list[_Look]) -> bool:
    colour, marker, hollow, dashed = look
    for shade, sign, is_open, is_dashed in entries:
        neutral = shade in NEUTRAL
        if hollow and is_open and (neutral or shade == colour):
            return True
        if marker == "x" and sign == "x" and (neutral or shade == colour):
            return True
        if hollow or marker == "x":
            continue
        if dashed and not marker and is_dashed and (neutral or shade == colour):
            return True
        if (
            shade == colour
            and (not marker or sign == marker)
            and (marker or not dashed)
        ):
            return True
    return False


def _said(look: _Look) -> str:
    colour, marker, hollow, dashed = look
    line = "a dashed line" if dashed else "a line"
    mark = f"{'hollow ' if hollow else ''}markers {marker!r}" if marker else line
    return f"{mark} in {colour}"


def _entries(figure: Figure) -> Iterator[Line2D]:
    """Yield the lines in all legends of a figure."""
    panels = [one for one in (panel.get_legend() for panel in figure.axes) if one]
    for one in (*panels, *figure.legends):
        yield from (x for x in one.findobj(Line2D) if isinstance(x, Line2D))


def _leaves(panel: Axes, line: Line2D) -> bool:
    """Whether points of a series lie well outside of the panel, above or below."""
    if line.get_marker() == "x" or line.get_transform() != panel.transData:
        return False
    room, places = panel.get_window_extent(), points_of(line)
    return bool(
        (places[:, 1] > room.y1 + _APART).any()
        or (places[:, 1] < room.y0 - _APART).any()
    )


def _on_ramp(colour: str) -> bool:
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return bool(np.abs(_RAMP - wanted).max(axis=1).min() <= 3)


def _kinds_of(marks: Iterable) -> list[str]:
    return sorted({type(one).__name__ for one in marks})


def _name(panel: Axes) -> str:
    title = panel.get_title(loc="left") or panel.get_title() or panel.get_ylabel()
    return f"panel {title!r}"


def _told(line: Line2D) -> str:
    label = str(line.get_label())
    return (
        f"{label!r}" if not label.startswith("_") else f"a series in {colour_of(line)}"
    )

"""Rules that every figure must pass, whatever it shows.

A rule looks at a figure after its layout and returns one sentence per problem. None of
them knows what the figure is about.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from theodolite.figures import BACKGROUND, GRID, KINDS, PALETTE, house_style
from theodolite.figures.export import (
    colour_of,
    has_marker,
    hidden,
    is_joined,
    lay_out,
    marks_in,
    points_of,
    series_of,
)
from theodolite.figures.marks import NEUTRAL, is_hollow, meaning
from theodolite.figures.style import WIDEST, ramp_colour

# Colours that the eye keeps apart in one panel, besides a ramp.
_MOST_COLOURS = 7
# Pixels, at 100 per inch, by which two marks are told apart.
_APART = 2.0
# Points, at the size at which a page shows the figure.
_SMALLEST = 7.0
_LOGARITHMS = ("log_{10}", "log10", "log_10")
_RAMP = np.array(
    [
        [int(ramp_colour(k / 300)[place : place + 2], 16) for place in (1, 3, 5)]
        for k in range(301)
    ]
)
_OF_KINDS = {look.colour.lower() for look in KINDS.values()} - NEUTRAL
_KNOWN = {one.lower() for one in (GRID, BACKGROUND, *PALETTE.values())}
_KNOWN |= _OF_KINDS | NEUTRAL


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The name of the rule that a figure breaks, and a sentence on what and where."""

    rule: str
    words: str


def check(figure: Figure) -> list[Problem]:
    """Return the problems of a finished figure."""
    with house_style():
        lay_out(figure)
        figure.draw_without_rendering()  # places the letters of legends
        return [
            Problem(rule=rule, words=words)
            for rule, find in RULES.items()
            for words in find(figure)
        ]


def shared_colours(figures: Iterable[Figure]) -> list[str]:
    """Return colours that stand for one kind in one figure and another in the next."""
    markers: dict[str, set[str]] = {}
    for figure in figures:
        for panel in figure.axes:
            for one in panel.lines:
                if colour_of(one) in _OF_KINDS and has_marker(one) and not meaning(one):
                    markers.setdefault(colour_of(one), set()).add(str(one.get_marker()))
    return [
        f"{colour} has the markers {', '.join(sorted(several))}"
        for colour, several in markers.items()
        if len(several) > 1
    ]


def legends_over_data(figure: Figure) -> list[str]:
    """No legend covers anything that a panel shows."""
    problems = []
    for panel in figure.axes:
        one = panel.get_legend()
        if one is not None:
            under = marks_in(panel, one.get_window_extent())
            kinds = sorted({type(mark).__name__ for mark in under})
            problems += [f"{_panel(panel)}: over {kind}" for kind in kinds]
    for one in figure.legends:
        box = one.get_window_extent()
        problems += [
            f"{_panel(panel)}: below the legend of the figure"
            for panel in figure.axes
            if panel.get_visible() and box.overlaps(panel.get_window_extent())
        ]
    return problems


def unexplained_marks(figure: Figure) -> list[str]:
    """Where a panel has several looks, a legend of the figure explains each."""
    panels = [one for one in (panel.get_legend() for panel in figure.axes) if one]
    entries = [
        _look(line)
        for one in (*panels, *figure.legends)
        for line in one.findobj(Line2D)
        if isinstance(line, Line2D)
    ]
    problems = []
    for panel in figure.axes:
        looks = _distinct({_look(one) for one in series_of(panel)})
        if len(looks) > 1:
            words = sorted(_words(x) for x in looks if not _explained(x, entries))
            problems += [f"{_panel(panel)}: no legend has {look}" for look in words]
    return problems


def hidden_series(figure: Figure) -> list[str]:
    """No series lies wholly under one that is drawn after it."""
    return [
        f"{_panel(panel)}: {_series(one)} is hidden under {_series(over)}"
        for panel in figure.axes
        for one, over in hidden(panel)
    ]


def unmarked_ends(figure: Figure) -> list[str]:
    """A series that leaves its panel, above or below, has a mark where it does."""
    problems = []
    for panel in figure.axes:
        ended = {colour_of(one) for one in panel.lines if one.get_marker() == "x"}
        box = panel.get_window_extent()
        for one in series_of(panel):
            if one.get_marker() == "x" or one.get_transform() != panel.transData:
                continue
            heights = points_of(one)[:, 1]
            beyond = (heights > box.y1 + _APART) | (heights < box.y0 - _APART)
            if beyond.any() and colour_of(one) not in ended:
                problems.append(
                    f"{_panel(panel)}: {_series(one)} leaves the panel unmarked"
                )
    return problems


def strange_colours(figure: Figure) -> list[str]:
    """Every line has a neutral colour, that of a kind, of the palette or the ramp."""
    return [
        f"{_panel(panel)}: {_series(one)} has the colour {colour_of(one)}"
        for panel in figure.axes
        for one in series_of(panel)
        if colour_of(one) not in _KNOWN and not _on_ramp(colour_of(one))
    ]


def many_colours(figure: Figure) -> list[str]:
    """A panel has no more colours of kinds than the eye keeps apart."""
    problems = []
    for panel in figure.axes:
        colours = {colour_of(one) for one in series_of(panel)} - NEUTRAL
        kinds = [one for one in colours if not _on_ramp(one)]
        if len(kinds) > _MOST_COLOURS:
            problems.append(
                f"{_panel(panel)}: {len(kinds)} colours, wanted {_MOST_COLOURS}"
            )
    return problems


def logarithms_in_words(figure: Figure) -> list[str]:
    """Axes show powers of ten; no label says that a logarithm was taken."""
    return [
        f"the label {label!r} speaks of a logarithm"
        for panel in figure.axes
        for label in (panel.get_xlabel(), panel.get_ylabel())
        if any(
            word in label.replace(r"\,", "").replace("$", "") for word in _LOGARITHMS
        )
    ]


def small_text(figure: Figure) -> list[str]:
    """No text is too small to read at the size at which a page shows the figure."""
    shrunk = min(1.0, WIDEST / figure.get_figwidth())
    sizes = [(shrunk * float(text.get_fontsize()), text) for text in _texts(figure)]
    small = [(size, text) for size, text in sizes if size < _SMALLEST - 1e-6]
    if not small:
        return []
    size, text = min(small, key=lambda pair: pair[0])
    return [
        f"{_text(text)} and {len(small) - 1} more are drawn at {size:.1f} points or "
        f"a little more, wanted {_SMALLEST:g}"
    ]


def text_over_text(figure: Figure) -> list[str]:
    """No two texts overlap; two slanted ones may stand side by side."""
    boxes = [(text, _box(text)) for text in _texts(figure)]
    return [
        f"{_text(one)} overlaps {_text(other)}"
        for (one, here), (other, there) in combinations(boxes, 2)
        if here.overlaps(there)
        and not (one.get_rotation() % 90 and other.get_rotation() % 90)
    ]


def text_off_the_page(figure: Figure) -> list[str]:
    """All of every text is on the page."""
    page = figure.bbox.padded(2.0)
    boxes = [(text, _box(text)) for text in _texts(figure)]
    return [
        f"{_text(text)} reaches beyond the page"
        for text, box in boxes
        if not (page.x0 <= box.x0 and box.x1 <= page.x1)
        or not (page.y0 <= box.y0 and box.y1 <= page.y1)
    ]


RULES: dict[str, Callable[[Figure], list[str]]] = {
    "legend over data": legends_over_data,
    "mark without a legend": unexplained_marks,
    "hidden series": hidden_series,
    "ends without a mark": unmarked_ends,
    "colour of no kind": strange_colours,
    "too many colours": many_colours,
    "logarithm in words": logarithms_in_words,
    "small text": small_text,
    "text over text": text_over_text,
    "text off the page": text_off_the_page,
}

_Look = tuple[str, str, bool, bool]


def _look(line: Line2D) -> _Look:
    """Return colour, marker, whether it is hollow, and whether the line is dashed."""
    marker = str(line.get_marker()) if has_marker(line) else ""
    dashed = is_joined(line) and line.is_dashed()
    return (colour_of(line), marker, bool(marker) and is_hollow(line), dashed)


def _distinct(looks: set[_Look]) -> set[_Look]:
    """Leave out plain lines that go with markers of their colour."""
    marked = {colour for colour, marker, hollow, _ in looks if marker and not hollow}
    return {look for look in looks if look[0] not in marked or any(look[1:])}


def _explained(look: _Look, entries: list[_Look]) -> bool:
    colour, marker, hollow, dashed = look
    for shade, sign, is_open, is_dashed in entries:
        fits = shade in NEUTRAL or shade == colour
        if hollow and is_open and fits:
            return True
        if marker == "x" and sign == "x" and fits:
            return True
        if hollow or marker == "x":
            continue
        if dashed and not marker and is_dashed and fits:
            return True
        same = sign == marker if marker else not dashed
        if shade == colour and same:
            return True
    return False


def _on_ramp(colour: str) -> bool:
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return bool(np.abs(_RAMP - wanted).max(axis=1).min() <= 3)


def _texts(figure: Figure) -> list[Text]:
    """Return the texts of a figure that can be seen."""
    absent = {id(label) for panel in figure.axes for label in _unseen(panel)}
    return [
        text
        for text in figure.findobj(Text)
        if isinstance(text, Text)
        and text.get_visible()
        and text.get_text().strip()
        and (text.axes is None or text.axes.get_visible())
        and id(text) not in absent
    ]


def _unseen(panel: Axes) -> Iterator[Text]:
    """Yield the labels of ticks beyond the limits of their axis, and hidden ones."""
    for axis in (panel.xaxis, panel.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            there = low <= tick.get_loc() <= high and axis.get_visible()
            if not there or not panel.axison:
                yield from (tick.label1, tick.label2)
        if not panel.axison:
            yield axis.label


def _box(text: Text) -> Bbox:
    """Return where the letters are: lines may touch, words may not."""
    return text.get_window_extent().padded(1.0, -1.0)


def _words(look: _Look) -> str:
    colour, marker, hollow, dashed = look
    line = "a dashed line" if dashed else "a line"
    mark = f"{'hollow ' if hollow else ''}markers {marker!r}" if marker else line
    return f"{mark} in {colour}"


def _panel(panel: Axes) -> str:
    title = panel.get_title(loc="left") or panel.get_title() or panel.get_ylabel()
    return f"panel {title!r}"


def _series(line: Line2D) -> str:
    label = str(line.get_label())
    named = not label.startswith("_")
    return f"{label!r}" if named else f"a series in {colour_of(line)}"


def _text(text: Text) -> str:
    words = text.get_text().replace("\n", " ")
    return f"the text {words[:40]!r}"

"""Rules about words: their size, their place, and how numbers are written."""

from collections.abc import Iterator
from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from theodolite.figures.style import WIDEST

# Points, at the size at which a page shows the figure.
_SMALLEST = 7.0
_LOGARITHMS = ("log_{10}", "log10", "log_10")


def logarithms_in_words(figure: Figure) -> list[str]:
    """Axes say numbers by powers of ten, never that a logarithm was taken."""
    return [
        f"the label {label!r} speaks of a logarithm"
        for panel in figure.axes
        for label in (panel.get_xlabel(), panel.get_ylabel())
        if any(
            word in label.replace(r"\,", "").replace("$", "") for word in _LOGARITHMS
        )
    ]


def small_text(figure: Figure) -> list[str]:
    """No text is smaller than can be read where a page shows the figure."""
    shrunk = min(1.0, WIDEST / figure.get_figwidth())
    sizes = [(shrunk * float(text.get_fontsize()), text) for text in _texts(figure)]
    small = [(size, text) for size, text in sizes if size < _SMALLEST - 1e-6]
    if not small:
        return []
    size, text = min(small, key=lambda found: found[0])
    return [
        f"{_told(text)} and {len(small) - 1} more are drawn at {size:.1f} points or "
        f"a little more, wanted {_SMALLEST:g}"
    ]


def text_over_text(figure: Figure) -> list[str]:
    """No two texts overlap; slanted ones are let pass beside one another."""
    boxes = [(text, _box(text)) for text in _texts(figure)]
    return [
        f"{_told(one)} overlaps {_told(other)}"
        for (one, here), (other, there) in combinations(boxes, 2)
        if here.overlaps(there) and not (_slanted(one) and _slanted(other))
    ]


def text_off_the_page(figure: Figure) -> list[str]:
    """All of every text is on the page."""
    page = figure.bbox.padded(2.0)
    return [
        f"{_told(text)} reaches beyond the page"
        for text in _texts(figure)
        if not _within(_box(text), page)
    ]


def _texts(figure: Figure) -> list[Text]:
    """Return what can be read in a figure."""
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


def _slanted(text: Text) -> bool:
    return text.get_rotation() % 90 != 0


def _within(box: Bbox, page: Bbox) -> bool:
    across = page.x0 <= box.x0 and box.x1 <= page.x1
    return bool(across and page.y0 <= box.y0 and box.y1 <= page.y1)


def _told(text: Text) -> str:
    words = text.get_text().replace("\n", " ")
    return f"the text {words[:40]!r}"

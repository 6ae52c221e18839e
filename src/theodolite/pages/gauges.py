"""Gauges: a number and its interval as a bar, drawn over a shaded region.

Places are in per cent, so that a drawing is as wide as its column while its letters
keep their size. Colours are left to the page's style sheet.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from theodolite.core import Region, SavedJudgement

from .figure_svg import SharedSvg
from .numbers import INFINITE, MINUS, format_number
from .scales import Scale, interval_scale
from .svg import element, path, text_element

# Heights in pixels: a line of letters, the bar beneath it, the axis under all.
_LETTERS, _BAR, _AXIS = 17, 17, 22
_ROW = _LETTERS + _BAR + 3
# Letters that fit on the narrowest phone; pixels per letter at the size for phones.
_FITS, _LETTER = 40, 6.4


@dataclass(frozen=True, kw_only=True)
class GaugeNumber:
    """A number to draw.

    Attributes:
        name: Its name.
        look: Class for its style: an outcome of a claim, a severity of a finding.
        value: The estimate; None if there is none.
        low: Lower end of its interval; None if it has none.
        high: Upper end of its interval; None if it has none.
        region: Where it is claimed to lie, or where a rule fires.
        note: Why there is no estimate.
    """

    name: str = ""
    look: str = ""
    value: float | None
    low: float | None
    high: float | None
    region: Region | None = None
    note: str = ""

    @classmethod
    def of(cls, leaf: SavedJudgement) -> "GaugeNumber":
        """Return the number that a judgement is about."""
        return cls(
            name=leaf.name, look=leaf.outcome.lower().replace(" ", "-"),
            value=leaf.value, low=leaf.low, high=leaf.high, region=leaf.region,
            note=leaf.note,
        )  # fmt: skip


def gauge_scale(numbers: Iterable[GaugeNumber]) -> Scale:
    """Return a scale that shows these numbers and their regions."""
    shown = list(numbers)
    regions = [one.region for one in shown if one.region is not None]
    return interval_scale([(one.value, one.low, one.high) for one in shown], regions)


def draw_gauge(
    rows: Sequence[tuple[str, GaugeNumber]], shared: SharedSvg, label: str
) -> Markup:
    """Draw numbers that share a region, one above the other, over an axis.

    Args:
        rows: Owner of each number, and the number.
        shared: Shapes and styles that the page's drawings share.
        label: Description of the drawing, for screen readers.
    """
    scale, tall = gauge_scale(number for _, number in rows), _ROW * len(rows)
    parts = []
    for place, (whose, number) in enumerate(rows):
        top = _ROW * place
        parts += [
            _line_above(f"{whose}: {format_interval(number)}", top),
            draw_strip(number, scale, shared, y=top + _LETTERS, height=_BAR),
        ]
    parts.append(_axis_line(0, 100, tall, tall))
    for value, label_ in scale.ticks():
        place = scale(value)
        anchor = "start" if place < 7 else "end" if place > 93 else "middle"
        parts += [
            _axis_line(place, place, tall, tall + 4),
            text_element(label_, f"{place:.4g}%", tall + 16, anchor),
        ]
    return element(
        "svg", *parts, class_="gauge", role="img", aria_label=label,
        width="100%", height=tall + _AXIS,
    )  # fmt: skip


def _line_above(text: str, top: int) -> Markup:
    """Write a line of text; a long one shrinks where the drawing is narrower than it.

    A view box with a fixed height never enlarges its content.
    """
    if len(text) <= _FITS:
        return text_element(text, "0%", top + 12)
    return element(
        "svg", text_element(text, 0, 12), overflow="visible", aria_hidden="true",
        y=top, width="100%", height=_LETTERS, preserveAspectRatio="xMinYMid meet",
        viewBox=f"0 0 {_LETTER * len(text):.0f} {_LETTERS}",
    )  # fmt: skip


def draw_strip(
    number: GaugeNumber, scale: Scale, shared: SharedSvg, **frame: float
) -> Markup:
    """Draw one number without an axis, beside its text.

    It is as wide as its column: lines keep their width, and a line of no length with
    round ends is the dot. The region, which many strips have, is drawn once per page.
    """
    return element(
        "svg", _region(number.region, scale, shared), *_interval(number, scale),
        class_=f"strip {number.look}", viewBox="0 0 100 18",
        preserveAspectRatio="none", aria_hidden="true", **frame,
    )  # fmt: skip


def format_interval(number: GaugeNumber) -> str:
    """Write a number with its interval.

    Example:
        >>> format_interval(GaugeNumber(value=1.234567, low=1.2, high=None))
        '1.235 [1.2, ∞]'
    """
    if number.value is None:
        return f"open{f', {number.note}' if number.note else ''}"
    digits = 4
    if number.low is not None and number.high is not None and number.high > number.low:
        # As many digits as tell the ends apart, within reason.
        size = max(abs(number.low), abs(number.high)) / (number.high - number.low)
        digits = min(max(2 + math.ceil(math.log10(size)), 3), 6)
    low = MINUS + INFINITE if number.low is None else _short(number.low, digits)
    high = INFINITE if number.high is None else _short(number.high, digits)
    return f"{_short(number.value, digits)} [{low}, {high}]"


def format_region(region: Region | None) -> str:
    """Write a region.

    Example:
        >>> from theodolite.core import above, near
        >>> [format_region(one) for one in (above(0), near(0, 1e-5), near(0, 0))]
        ['> 0', '[−1 × 10⁻⁵, 1 × 10⁻⁵]', '0']
    """
    if region is None:
        return ""
    if math.isinf(region.low):
        return f"{'<' if region.high_open else '≤'} {_short(region.high)}"
    if math.isinf(region.high):
        return f"{'>' if region.low_open else '≥'} {_short(region.low)}"
    if region.low == region.high:
        return _short(region.low)
    left, right = ("(" if region.low_open else "["), (")" if region.high_open else "]")
    return f"{left}{_short(region.low)}, {_short(region.high)}{right}"


def _region(region: Region | None, scale: Scale, shared: SharedSvg) -> Markup:
    if region is None:
        return Markup("")
    left, right = _place(scale, region.low), _place(scale, region.high)
    parts = [path("region", f"M{left} 0H{right}V18H{left}z")]
    ends = (region.low, region.low_open), (region.high, region.high_open)
    parts += [
        path("end open" if is_open else "end", f"M{_place(scale, end)} 0v18")
        for end, is_open in ends
        if math.isfinite(end)
    ]
    return element("use", href=f"#{shared.group(Markup('').join(parts))}")


def _interval(number: GaugeNumber, scale: Scale) -> list[Markup]:
    if number.value is None:
        return []
    low = _place(scale, -math.inf if number.low is None else number.low)
    high = _place(scale, math.inf if number.high is None else number.high)
    ends = ((number.low, low), (number.high, high))
    caps = dict.fromkeys(f"M{place} 5v8" for end, place in ends if end is not None)
    return [
        path("bar", f"M{low} 9H{high}{''.join(caps)}"),
        path("dot", f"M{_place(scale, number.value)} 9h0"),
    ]


def _place(scale: Scale, value: float) -> str:
    """Write a place to a thousandth of the width."""
    return f"{round(scale(value), 1):g}"


def _axis_line(x1: float, x2: float, y1: int, y2: int) -> Markup:
    ends = {"x1": f"{x1:.4g}%", "x2": f"{x2:.4g}%"}
    return element("line", class_="axis", **ends, y1=y1, y2=y2)


def _short(value: float, digits: int = 4) -> str:
    return format_number(float(f"{value:.{digits}g}"))

"""A verdict drawn: the claimed region shaded, each interval a bar on one axis.

Places are in per cent, so that a drawing is as wide as its column while its letters
keep their size. Colours are the page's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from theodolite.core import (
    INFINITE,
    MINUS,
    Region,
    SavedJudgement,
    format_number,
)
from theodolite.report.scale import Scale, scale_for
from theodolite.report.sheet import Sheet

# A line of letters, then the band that they are about, in pixels.
_LETTERS, _BAND, _FOOT = 17, 17, 22
_ROW = _LETTERS + _BAND + 3


@dataclass(frozen=True)
class Strip:
    """A number to draw, and whose it is."""

    whose: str
    leaf: SavedJudgement


def gauge(strips: Sequence[Strip]) -> Markup:
    """Draw numbers that share a region, one above the other, over an axis."""
    leaves = [strip.leaf for strip in strips]
    region = leaves[0].region
    scale = scale_for(leaves)
    tall = _ROW * len(strips)
    parts = []
    for place, strip in enumerate(strips):
        top = _ROW * place
        words = f"{strip.whose}: {told(strip.leaf)}"
        parts.append(_text(0, top + 12, words, "start"))
        parts.append(_region(region, scale, top + _LETTERS, _BAND))
        parts.append(_bar(strip.leaf, scale, top + _LETTERS + _BAND // 2))
    parts.append(_axis(scale, tall))
    return Markup(
        '<svg class="gauge" role="img" aria-label="{}" width="100%" height="{}">{}'
        "</svg>"
    ).format(_in_words(strips, region), tall + _FOOT, Markup("").join(parts))


def small_gauge(leaf: SavedJudgement, scale: Scale, sheet: Sheet) -> Markup:
    """Draw one number without an axis, beside words that say it.

    It is as wide as its column: lines keep their width, and a line of no length with
    round ends is the dot. The region, alike for many, stands in the page's sheet.
    """
    return Markup(
        '<svg class="strip {}" viewBox="0 0 100 18" preserveAspectRatio="none" '
        'aria-hidden="true">{}{}</svg>'
    ).format(
        leaf.outcome.lower(),
        _strip_region(leaf.region, scale, sheet),
        _strip(leaf, scale),
    )


def _strip_region(region: Region | None, scale: Scale, sheet: Sheet) -> Markup:
    if region is None:
        return Markup("")
    left, right = _near(scale.place(region.low)), _near(scale.place(region.high))
    parts = [
        Markup('<path class="region" d="M{} 0H{}V18H{}z"/>').format(left, right, left)
    ]
    for end, is_open in (
        (region.low, region.low_open),
        (region.high, region.high_open),
    ):
        if math.isfinite(end):
            parts.append(
                Markup('<path class="{}" d="M{} 0v18"/>').format(
                    "end open" if is_open else "end", _near(scale.place(end))
                )
            )
    return Markup('<use href="#{}"/>').format(sheet.group(Markup("").join(parts)))


def _strip(leaf: SavedJudgement, scale: Scale) -> Markup:
    if leaf.value is None:
        return Markup("")
    low = _near(scale.place(-math.inf if leaf.low is None else leaf.low))
    high = _near(scale.place(math.inf if leaf.high is None else leaf.high))
    ends = ((leaf.low, low), (leaf.high, high))
    caps = dict.fromkeys(f"M{place} 5v8" for end, place in ends if end is not None)
    return Markup(
        '<path class="bar" d="M{} 9H{}{}"/><path class="dot" d="M{} 9h0"/>'
    ).format(low, high, "".join(caps), _near(scale.place(leaf.value)))


def _near(place: float) -> str:
    """Write a place to a thousandth of the width."""
    return f"{round(place, 1):g}"


def told(leaf: SavedJudgement) -> str:
    """Write a number with its interval.

    Example:
        >>> from theodolite.core import Outcome
        >>> told(SavedJudgement(name="", rule="number", outcome=Outcome.HOLDS,
        ...      p_holds=0.0, p_fails=1.0, value=1.234567, low=1.2, high=None))
        '1.235 [1.2, ∞]'
    """
    if leaf.value is None:
        return f"open{f', {leaf.note}' if leaf.note else ''}"
    digits = _digits(leaf)
    low = MINUS + INFINITE if leaf.low is None else _short(leaf.low, digits)
    high = INFINITE if leaf.high is None else _short(leaf.high, digits)
    return f"{_short(leaf.value, digits)} [{low}, {high}]"


def _digits(leaf: SavedJudgement) -> int:
    """Return how many digits tell the ends of an interval apart, within reason."""
    if leaf.low is None or leaf.high is None or leaf.high <= leaf.low:
        return 4
    size = max(abs(leaf.low), abs(leaf.high))
    return min(max(2 + math.ceil(math.log10(size / (leaf.high - leaf.low))), 3), 6)


def region_told(region: Region | None) -> str:
    """Write a region.

    Example:
        >>> from theodolite.core import above, near
        >>> region_told(above(0)), region_told(near(0, 1e-5)), region_told(near(0, 0))
        ('> 0', '[−1 × 10⁻⁵, 1 × 10⁻⁵]', '0')
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


def _short(value: float, digits: int = 4) -> str:
    return format_number(float(f"{value:.{digits}g}"))


def _region(region: Region | None, scale: Scale, top: int, tall: int) -> Markup:
    if region is None:
        return Markup("")
    left, right = scale.place(region.low), scale.place(region.high)
    shade = '<rect class="region" x="{}%" y="{}" width="{}%" height="{}"/>'
    parts = [Markup(shade).format(_at(left), top, _at(right - left), tall)]
    ends = (region.low, region.low_open), (region.high, region.high_open)
    for end, is_open in ends:
        if math.isfinite(end):
            kind, place = "end open" if is_open else "end", scale.place(end)
            parts.append(_line(kind, place, place, top, top + tall))
    return Markup("").join(parts)


def _bar(leaf: SavedJudgement, scale: Scale, y: int) -> Markup:
    if leaf.value is None:
        return Markup("")
    low = scale.place(-math.inf if leaf.low is None else leaf.low)
    high = scale.place(math.inf if leaf.high is None else leaf.high)
    kind = f"bar {leaf.outcome.lower()}"
    parts = [_line(kind, low, high, y, y)]
    parts += [
        _line(f"{kind} cap", place, place, y - 4, y + 4)
        for end, place in ((leaf.low, low), (leaf.high, high))
        if end is not None
    ]
    dot = '<circle class="estimate" cx="{}%" cy="{}" r="3.5"/>'
    return Markup("").join(
        [*parts, Markup(dot).format(_at(scale.place(leaf.value)), y)]
    )


def _axis(scale: Scale, y: int) -> Markup:
    parts = [_line("axis", 0, 100, y, y)]
    for value, label in scale.ticks():
        place = scale.place(value)
        parts.append(_line("axis", place, place, y, y + 4))
        anchor = "start" if place < 7 else "end" if place > 93 else "middle"
        parts.append(_text(place, y + 16, label, anchor))
    return Markup("").join(parts)


def _line(kind: str, x1: float, x2: float, y1: int, y2: int) -> Markup:
    return Markup('<line class="{}" x1="{}%" x2="{}%" y1="{}" y2="{}"/>').format(
        kind, _at(x1), _at(x2), y1, y2
    )


def _text(x: float, y: int, words: str, anchor: str) -> Markup:
    return Markup('<text x="{}%" y="{}" text-anchor="{}">{}</text>').format(
        _at(x), y, anchor, escape(words)
    )


def _at(place: float) -> str:
    return f"{place:.4g}"


def _in_words(strips: Sequence[Strip], region: Region | None) -> str:
    parts = [
        f"{strip.whose}: {strip.leaf.name} {told(strip.leaf)}, {strip.leaf.outcome}"
        for strip in strips
    ]
    return f"{'; '.join(parts)}. Claimed region: {region_told(region)}."

"""Named numbers as lying bars with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from theodolite.survey.page.numbers import number, tick
from theodolite.survey.page.scales import scale_of
from theodolite.survey.page.svg import box, element, group

_WIDE, _LEFT, _RIGHT, _PITCH, _FOOT = 460, 150, 16, 24, 42
_LONGEST = 24


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One number with its interval."""

    name: str
    value: float
    low: float
    high: float
    side: str = "a"


def draw_bars(
    bars: Sequence[Bar],
    *,
    label: str,
    axis: str,
    log: bool = False,
    rule: tuple[float, str] | None = None,
    filled: bool = False,
) -> Markup:
    """Return the numbers one below the other on one axis.

    Args:
        bars: What is drawn.
        label: What the drawing shows.
        axis: Name of the axis.
        log: Whether it is logarithmic.
        rule: Place and name of an upright line.
        filled: Whether bars start at the left and end at the value.
    """
    within = [] if rule is None else [rule[0]]
    within += [0.0] if filled else []
    ends = [v for bar in bars for v in (bar.value, bar.low, bar.high)]
    x = scale_of(ends, _LEFT, _WIDE - _RIGHT, log=log, within=within)
    base = 18 + _PITCH * len(bars)
    parts = []
    for value in x.ticks(4):
        at = x(value)
        parts += [
            element("path", class_="grid", d=f"M{at:.1f} 14V{base}"),
            element("text", tick(value), x=at, y=base + 16, text_anchor="middle"),
        ]
    parts.append(
        element(
            "text",
            axis,
            class_="name",
            x=(_LEFT + _WIDE - _RIGHT) / 2,
            y=base + 34,
            text_anchor="middle",
        )
    )
    drawn = []
    for place, bar in enumerate(bars):
        y = 18 + _PITCH * (place + 0.5)
        left, right = x(0.0 if filled else bar.low), x(bar.high)
        told = f"{bar.name}: {number(bar.value)}"
        if not filled:
            told += f", between {number(bar.low)} and {number(bar.high)}"
        cut = bar.name if len(bar.name) <= _LONGEST else f"…{bar.name[1 - _LONGEST :]}"
        shapes = [
            element("title", told),
            element("text", cut, x=_LEFT - 10, y=y + 4, text_anchor="end"),
            element("path", d=box(left, y - 6, max(1.0, right - left), 12)),
        ]
        if not filled:
            shapes.append(element("circle", cx=x(bar.value), cy=y, r=4.0))
        drawn.append(group(shapes, class_=f"interval {bar.side}"))
    if rule is not None:
        at = x(rule[0])
        drawn += [
            element("path", class_="rule", d=f"M{at:.1f} 12V{base}"),
            element("text", rule[1], class_="rule", x=at, y=9, text_anchor="middle"),
        ]
    return element(
        "svg",
        group(parts, class_="axes"),
        *drawn,
        class_="chart",
        viewBox=f"0 0 {_WIDE} {base + _FOOT}",
        role="img",
        aria_label=label,
    )

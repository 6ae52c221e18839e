"""Charts of series with their errors, as SVG; looks are left to the page's style."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from markupsafe import Markup

from theodolite.survey.page.numbers import number, tick
from theodolite.survey.page.scales import Scale, scale_of
from theodolite.survey.page.svg import box, element, group, line

WIDTH, HEIGHT = 460, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 14, 14, 46
# A line of so few points shows each.
_DOTTED = 25

Point = tuple[float, float, float | None]


@dataclass(frozen=True, kw_only=True)
class Series:
    """Points of one kind: place, value, error.

    Attributes:
        name: What it is called.
        points: In order of their places; values are finite.
        kind: A line with a band for its error, dots with bars, or columns.
        side: ``"a"`` or ``"b"``, which colours it.
        quiet: Whether to draw it thinner than the others.
    """

    name: str
    points: tuple[Point, ...]
    kind: Literal["line", "dots", "bars"] = "line"
    side: str = "a"
    quiet: bool = False


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart: series on two axes, with lines of reference.

    Attributes:
        label: What the drawing shows, for those who do not see it.
        x: Name of the horizontal axis.
        y: Name of the vertical axis.
        series: What is drawn.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: Whether the vertical one is.
        levels: Heights of dashed lines, with their names.
        uprights: Places of upright dashed lines, with their names.
        from_zero: Whether the vertical axis starts at zero.
    """

    label: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    levels: tuple[tuple[float, str], ...] = ()
    uprights: tuple[tuple[float, str], ...] = ()
    from_zero: bool = False


def draw(chart: Chart) -> Markup:
    """Return the chart as an SVG."""
    x, y = _scales(chart)
    return element(
        "svg",
        _axes(chart, x, y),
        *(_drawn(one, x, y) for one in chart.series),
        *_references(chart, x, y),
        class_="chart",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=chart.label,
    )


def _scales(chart: Chart) -> tuple[Scale, Scale]:
    points = [p for one in chart.series for p in one.points]
    x = scale_of(
        (p[0] for p in points),
        _LEFT,
        WIDTH - _RIGHT,
        log=chart.log_x,
        within=[at for at, _ in chart.uprights],
    )
    if any(one.kind == "bars" for one in chart.series):  # room for the outer bars
        half = _bar(points) / 2
        x = Scale(low=x.low - half, high=x.high + half, start=x.start, end=x.end)
    errors = [p[1] + s * (p[2] or 0) for p in points for s in (-1, 1)]
    # An error that reaches below zero must not stretch a logarithmic axis to nothing.
    reach = [p[1] for p in points] + ([] if chart.log_y else errors)
    zero = [0.0] if chart.from_zero and not chart.log_y else []
    y = scale_of(
        reach,
        HEIGHT - _BOTTOM,
        _TOP,
        log=chart.log_y,
        within=[*zero, *(at for at, _ in chart.levels)],
    )
    if chart.uprights and not chart.log_y:  # room for their names
        y = replace(y, high=y.high + 0.14 * (y.high - y.low))
    elif chart.uprights:
        y = replace(y, high=y.high * (y.high / y.low) ** 0.14)
    return x, y


def _axes(chart: Chart, x: Scale, y: Scale) -> Markup:
    base, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    parts: list[Markup] = []
    for value in y.ticks(5):
        at = y(value)
        parts += [
            element("path", class_="grid", d=f"M{_LEFT} {at:.1f}H{right}"),
            element("text", tick(value), x=_LEFT - 7, y=at + 4, text_anchor="end"),
        ]
    for value in x.ticks(5):
        at = x(value)
        parts += [
            element("path", class_="tick", d=f"M{at:.1f} {base}v4"),
            element("text", tick(value), x=at, y=base + 18, text_anchor="middle"),
        ]
    middle = (_TOP + base) / 2
    parts += [
        element("path", class_="axis", d=f"M{_LEFT} {base}H{right}"),
        element(
            "text", chart.x, class_="name", x=(_LEFT + right) / 2, y=base + 38,
            text_anchor="middle",
        ),
        element(
            "text", chart.y, class_="name", text_anchor="middle",
            transform=f"translate(14 {middle:.0f}) rotate(-90)",
        ),
    ]  # fmt: skip
    return group(parts, class_="axes")


def _drawn(series: Series, x: Scale, y: Scale) -> Markup:
    draws = {"line": _line, "dots": _dots, "bars": _bars}
    parts = list(draws[series.kind](series.points, x, y))
    look = f"series {series.kind} {series.side}{' quiet' if series.quiet else ''}"
    return group([element("title", series.name), *parts], class_=look)


def _line(points: Sequence[Point], x: Scale, y: Scale) -> Iterator[Markup]:
    if any(error for *_, error in points):
        upper = [(x(a), y(b + (e or 0))) for a, b, e in points]
        lower = [(x(a), y(b - (e or 0))) for a, b, e in reversed(points)]
        yield element("path", class_="band", d=line([*upper, *lower]) + "z")
    yield element("path", class_="stroke", d=line([(x(a), y(b)) for a, b, _ in points]))
    if len(points) <= _DOTTED:
        dots = "".join(f"M{x(a):.1f} {y(b):.1f}h0" for a, b, _ in points)
        yield element("path", class_="points", d=dots)


def _dots(points: Sequence[Point], x: Scale, y: Scale) -> Iterator[Markup]:
    for a, b, error in points:
        if error:
            reach = f"M{x(a):.1f} {y(b - error):.1f}V{y(b + error):.1f}"
            yield element("path", class_="reach", d=reach)
        told = element("title", f"{tick(a)}: {number(b, error)}")
        yield element("circle", told, cx=x(a), cy=y(b), r=3.5)


def _bars(points: Sequence[Point], x: Scale, y: Scale) -> Iterator[Markup]:
    half = _bar(points) * 0.42
    base = y(0.0) if not y.log else y.start
    for a, b, error in points:
        left, right, top = x(a - half), x(a + half), y(b)
        told = element("title", f"{tick(a)}: {number(b, error)}")
        low, tall = min(top, base), abs(base - top)
        yield element("path", told, d=box(left, low, max(0.5, right - left), tall))
        if error:
            middle = (left + right) / 2
            reach = f"M{middle:.1f} {y(b - error):.1f}V{y(b + error):.1f}"
            yield element("path", class_="reach", d=reach)


def _bar(points: Sequence[Point]) -> float:
    places = sorted({p[0] for p in points})
    gaps = [b - a for a, b in itertools.pairwise(places)]
    return min(gaps, default=1.0)


def _references(chart: Chart, x: Scale, y: Scale) -> Iterator[Markup]:
    for at, name in chart.levels:
        level = y(at)
        yield element("path", class_="rule", d=f"M{_LEFT} {level:.1f}H{WIDTH - _RIGHT}")
        yield element(
            "text", name, class_="rule", x=WIDTH - _RIGHT, y=level - 4,
            text_anchor="end",
        )  # fmt: skip
    for turn, (at, name) in enumerate(chart.uprights):
        place = x(at)
        left = place > WIDTH * 0.6
        yield element(
            "path", class_="rule", d=f"M{place:.1f} {_TOP}V{HEIGHT - _BOTTOM}"
        )
        yield element(
            "text",
            name,
            class_="rule",
            x=place + (-5 if left else 5),
            y=_TOP + 9 + 13 * turn,
            text_anchor="end" if left else "start",
        )


def finite_points(
    points: Sequence[tuple[float | None, float | None, float | None]],
) -> tuple[Point, ...]:
    """Return the points that can be drawn, in order of their places.

    Example:
        >>> finite_points([(2, 1.0, None), (1, None, None), (0, 3.0, float("nan"))])
        ((0.0, 3.0, None), (2.0, 1.0, None))
    """
    kept = [
        (float(a), float(b), float(e) if e is not None and math.isfinite(e) else None)
        for a, b, e in points
        if a is not None and b is not None and math.isfinite(a) and math.isfinite(b)
    ]
    return tuple(sorted(kept, key=lambda p: p[0]))

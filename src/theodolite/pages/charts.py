"""Charts of numbers with their errors; looks are left to the page's style sheet."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from .numbers import short_number, tick_label
from .scales import Scale, scale_of
from .svg import element, group, line, path, picture, rectangle, text_element

WIDTH, HEIGHT = 460, 270
_LEFT, _RIGHT, _TOP, _BASE = 84, WIDTH - 14, 14, HEIGHT - 46
# A line of at most this many points shows each of them.
_DOTTED = 25
# Bars that lie on their side: both ends, distance between two, longest name.
_BARS_LEFT, _BARS_RIGHT, _PITCH, _LONGEST = 130, WIDTH - 110, 24, 20

Point = tuple[float, float, float | None]


@dataclass(frozen=True, kw_only=True)
class Series:
    """Points of one kind, drawn as a line with a band for its error.

    Attributes:
        name: Its name.
        points: Place, value and error, in order of their places; values are finite.
    """

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Series on two axes, with reference lines.

    Attributes:
        label: Description of the drawing, for screen readers.
        x: Name of the horizontal axis.
        y: Name of the vertical axis.
        series: The series to draw.
        log_y: Whether the vertical axis is logarithmic.
        log_x: Whether the horizontal axis is.
        levels: Heights of dashed lines, with their names.
        uprights: Places of upright dashed lines, with their names.
    """

    label: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_y: bool = False
    log_x: bool = False
    levels: tuple[tuple[float, str], ...] = ()
    uprights: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One named number.

    Attributes:
        name: Its name.
        value: The number.
        low: Lower end of its interval, if it has one.
        high: Upper end of its interval.
        mark: Another number to compare with it, such as the one in use.
        unit: Unit of the numbers.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    mark: float | None = None
    unit: str = ""


def draw_chart(chart: Chart) -> Markup:
    """Return a chart as SVG."""
    x, y = _scales(chart)
    # Between steps and between blocks there is nothing to label.
    whole = all(p[0] == round(p[0]) for one in chart.series for p in one.points)
    axes = _x_axis(x, chart.x, _BASE, whole=whole)
    axes.append(path("axis", f"M{_LEFT} {_BASE}H{_RIGHT}"))
    zeros = [(0.0, "0")] if y.kind == "log" and _has_zero(chart) else []
    for value, label in (*zeros, *y.ticks()):
        at = y(value)
        axes += [
            path("grid", f"M{_LEFT} {at:.1f}H{_RIGHT}"),
            text_element(label, _LEFT - 7, at + 4, "end"),
        ]
    turn = f"translate(14 {(_TOP + _BASE) / 2:.0f}) rotate(-90)"
    axes.append(
        element("text", chart.y, class_="name", text_anchor="middle", transform=turn)
    )
    drawn = [_series(one, x, y) for one in chart.series]
    drawn += _references(chart, x, y)
    return picture("chart", chart.label, WIDTH, HEIGHT, group(axes, "axes"), *drawn)


def draw_bars(
    bars: Sequence[Bar],
    *,
    label: str,
    axis: str,
    log: bool = False,
) -> Markup:
    """Return named numbers one below the other, on one axis, each written out.

    Args:
        bars: The numbers; a bar spans the interval, or starts at zero without one.
        label: What the drawing shows.
        axis: Name of the axis.
        log: Whether it is logarithmic.
    """
    ends = [v for bar in bars for v in (bar.value, bar.low, bar.high, bar.mark)]
    within = [0.0 for bar in bars if bar.low is None]
    within += [] if any(ends) else [1.0]  # so that bars of 0 start at the left
    x = scale_of(ends, _BARS_LEFT, _BARS_RIGHT, log=log, within=within)
    base = 18 + _PITCH * len(bars)
    drawn = []
    for place, bar in enumerate(bars):
        y = 18 + _PITCH * (place + 0.5)
        low, high = bar.low or 0.0, bar.value if bar.high is None else bar.high
        value = f"{short_number(bar.value)} {bar.unit}".strip()
        title, dot = f"{bar.name}: {value}", []
        if bar.low is not None:
            title += f", between {short_number(low)} and {short_number(high)}"
            dot.append(element("circle", cx=x(bar.value), cy=y, r=4.0))
        if bar.mark is not None:
            title += f"; in use {short_number(bar.mark)}"
            value += f" / {short_number(bar.mark)}"
            dot.append(path("mark", f"M{x(bar.mark):.1f} {y - 10:.1f}v20"))
        cut = bar.name if len(bar.name) <= _LONGEST else f"…{bar.name[1 - _LONGEST :]}"
        parts = [
            element("title", title),
            text_element(cut, _BARS_LEFT - 10, y + 4, "end"),
            text_element(value, WIDTH, y + 4, "end"),
            path("", rectangle(x(low), y - 6, max(1.0, x(high) - x(low)), 12)),
        ]
        drawn.append(group([*parts, *dot], "interval"))
    axes = group(_x_axis(x, axis, base, grid_top=14), "axes")
    return picture("chart", label, WIDTH, base + 42, axes, *drawn)


def finite_points(
    points: Iterable[tuple[float | None, float | None, float | None]],
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


def _scales(chart: Chart) -> tuple[Scale, Scale]:
    points = [p for one in chart.series for p in one.points]
    uprights = [at for at, _ in chart.uprights]
    places = (p[0] for p in points)
    x = scale_of(places, _LEFT, _RIGHT, log=chart.log_x, within=uprights)
    # An error that reaches below zero must not stretch a logarithmic axis to nothing.
    reach = [p[1] for p in points]
    if not chart.log_y:
        reach += [p[1] + sign * (p[2] or 0) for p in points for sign in (-1, 1)]
    within = [at for at, _ in chart.levels]
    y = scale_of(reach, _BASE, _TOP, log=chart.log_y, within=within)
    # A logarithmic axis shows zeros at its end, apart from the smallest number.
    y = y.widened(0.12, 0) if chart.log_y and _has_zero(chart) else y
    # Names of upright lines stand above what is drawn.
    return x, y.widened(0, 0.14) if uprights else y


def _has_zero(chart: Chart) -> bool:
    return any(point[1] == 0 for one in chart.series for point in one.points)


def _x_axis(
    x: Scale,
    name: str,
    base: float,
    grid_top: float | None = None,
    *,
    whole: bool = False,
) -> list[Markup]:
    parts = []
    ticks = x.ticks()
    if whole:
        ticks = [(v, tick_label(v)) for v, _ in ticks if v == round(v)]
    for value, label in ticks:
        at = x(value)
        mark = path("tick", f"M{at:.1f} {base}v4")
        if grid_top is not None:
            mark = path("grid", f"M{at:.1f} {grid_top}V{base}")
        inside = min(at, WIDTH - 3.6 * len(label))  # the last label is not cut
        parts += [mark, text_element(label, inside, base + 18, "middle")]
    middle = (x.start + x.end) / 2
    return [*parts, text_element(name, middle, base + 38, "middle", "name")]


def _series(series: Series, x: Scale, y: Scale) -> Markup:
    title = element("title", series.name)
    return group([title, *_line(series.points, x, y)], "series")


def _line(points: Sequence[Point], x: Scale, y: Scale) -> Iterator[Markup]:
    if any(error for *_, error in points):
        upper = [(x(a), y(b + (e or 0))) for a, b, e in points]
        lower = [(x(a), y(b - (e or 0))) for a, b, e in reversed(points)]
        yield path("band", line([*upper, *lower]) + "z")
    yield path("stroke", line([(x(a), y(b)) for a, b, _ in points]))
    if len(points) <= _DOTTED:
        dots = "".join(f"M{x(a):.1f} {y(b):.1f}h0" for a, b, _ in points)
        yield path("points", dots)


def _references(chart: Chart, x: Scale, y: Scale) -> Iterator[Markup]:
    for at, name in chart.levels:
        yield path("rule", f"M{_LEFT} {y(at):.1f}H{_RIGHT}")
        yield text_element(name, _RIGHT, y(at) - 4, "end", "rule")
    for turn, (at, name) in enumerate(chart.uprights):
        place, left = x(at), x(at) > WIDTH * 0.6
        yield path("rule", f"M{place:.1f} {_TOP}V{_BASE}")
        shift, anchor = (-5, "end") if left else (5, "start")
        yield text_element(name, place + shift, _TOP + 9 + 13 * turn, anchor, "rule")

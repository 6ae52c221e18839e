"""Marks: measured series, predicted curves, reference lines, and their meaning.

Some marks mean the same in every series: a hollow one is a bound, a dashed line a
prediction, a cross an end. Pass the meaning as ``means``; a legend that is added
afterwards explains it once, in the muted colour.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from theodolite.core import ConfigError, Rows

from .kinds import kind_style
from .style import BACKGROUND, MUTED, TEXT_COLOUR, SeriesStyle

Values = Sequence[float] | Sequence[int] | np.ndarray

_LINE_WIDTH = 1.6
_MARKER_SIZE = 5.0
_DASHED = (0, (4, 2))
# Edges of markers that are too thin without one.
_EDGES = {"x": 1.6, "P": 0.6, "X": 0.6}
# Matplotlib leaves labels that begin so out of its legends.
_PREFIX = "_means:"
NEUTRAL = frozenset({TEXT_COLOUR.lower(), MUTED.lower()})


def band(
    ax: Axes,
    x: Values,
    mean: Values,
    error: Values | None = None,
    *,
    style: SeriesStyle,
    label: str | None = None,
    bound: Sequence[bool] | np.ndarray | None = None,
    means: str | None = None,
    kind: Literal["band", "bars"] = "band",
    line: bool = True,
    ends: str | None = None,
    marker_size: float = _MARKER_SIZE,
) -> Line2D:
    """Draw a measured series with its error; bounds get hollow markers.

    Points that are not finite are left out, and an error that is not finite is
    drawn as none.

    Args:
        ax: Where to draw.
        x: Abscissae, in drawing order.
        mean: Measured values.
        error: Half-widths; None where the values are exact.
        style: Look of the series.
        label: Its name in the legend.
        bound: True where a value is only a bound on the quantity.
        means: What hollow markers mean, for the legend.
        kind: A shaded band, or a bar at every point.
        line: Whether to join the points.
        ends: Why there is nothing after the last point, which gets a cross.
        marker_size: In points; larger for a series that others are drawn over.
    """
    xs, ys = _column("x", x), _column("mean", mean)
    spread = np.zeros_like(ys) if error is None else _column("error", error)
    hollow = np.zeros(ys.size, bool) if bound is None else np.asarray(bound, bool)
    for name, values in (("mean", ys), ("error", spread), ("bound", hollow)):
        if values.size != xs.size:
            raise ConfigError(
                f"{xs.size} abscissae but {values.size} values of {name}: "
                "pass one for each"
            )
    keep = np.isfinite(xs) & np.isfinite(ys)
    xs, ys, spread, hollow = xs[keep], ys[keep], spread[keep], hollow[keep]
    spread = np.where(np.isfinite(spread), spread, 0.0)
    if spread.any() and kind == "band":
        low, high = ys - spread, ys + spread
        ax.fill_between(xs, low, high, color=style.colour, alpha=0.18, linewidth=0)
    elif spread.any():
        bars: dict[str, Any] = {"elinewidth": 1.0, "capsize": 2.5, "capthick": 1.0}
        bars |= {"fmt": "none", "ecolor": style.colour, "label": _label(None)}
        ax.errorbar(xs, ys, yerr=spread, **bars)
    artist = _draw_points(ax, xs, ys, hollow, style, line, marker_size, means)
    artist.set_label(_label(label))
    if ends and xs.size:
        end_mark(ax, xs[-1], ys[-1], style=style, means=ends)
    return artist


def curve(
    ax: Axes,
    x: Values,
    y: Values,
    *,
    style: SeriesStyle,
    label: str | None = None,
    means: str | None = None,
) -> Line2D:
    """Draw a prediction: a dashed line without markers, in its series' colour.

    Args:
        ax: Where to draw.
        x: Abscissae, in drawing order.
        y: Predicted values.
        style: Look of the series.
        label: Its own name in the legend.
        means: What dashed lines of all series mean, for one entry of the legend.
    """
    (artist,) = ax.plot(
        _column("x", x),
        _column("y", y),
        color=style.colour,
        linestyle=_DASHED,
        linewidth=_LINE_WIDTH,
        label=_label(label, means),
        zorder=2.2,
    )
    return artist


def line(
    ax: Axes, x: Values, y: Values, *, style: SeriesStyle, label: str | None = None
) -> Line2D:
    """Draw a series of many points: its line alone, without markers."""
    (artist,) = ax.plot(
        _column("x", x),
        _column("y", y),
        color=style.colour,
        linestyle=style.line,
        linewidth=_LINE_WIDTH,
        label=_label(label),
        zorder=2.4,
    )
    return artist


def row_band(
    ax: Axes,
    rows: Rows,
    x: str,
    *,
    style: SeriesStyle | str,
    error: str | None = "error",
    **look: Any,
) -> Line2D:
    """Draw rows as a measured series: their values and errors against a column.

    Args:
        ax: Where to draw.
        rows: In drawing order.
        x: Column of the abscissae.
        style: Look of the series, or the name of its kind.
        error: Column of the half-widths; None where the values are exact.
        look: Further arguments of ``band``.
    """
    spread = None if error is None else rows.values(error)
    look["style"] = kind_style(style) if isinstance(style, str) else style
    return band(ax, rows.column(x), rows.values(), spread, **look)


def row_curve(
    ax: Axes, rows: Rows, x: str, *, style: SeriesStyle | str, **look: Any
) -> Line2D:
    """Draw rows as a prediction: their values against a column, as ``curve`` does."""
    look["style"] = kind_style(style) if isinstance(style, str) else style
    return curve(ax, rows.column(x), rows.values(), **look)


def row_line(ax: Axes, rows: Rows, x: str, **look: Any) -> Line2D:
    """Draw rows as a line alone: their values against a column, as ``line`` does."""
    return line(ax, rows.column(x), rows.values(), **look)


def reference_line(
    ax: Axes, value: float, *, label: str | None = None, along: str = "x"
) -> None:
    """Draw a thin reference line, along ``x`` (horizontal) or along ``y``."""
    settings: dict[str, Any] = {
        "color": TEXT_COLOUR,
        "linewidth": 0.9,
        "linestyle": (0, (1, 2)),
        "label": _label(label),
        "zorder": 1.5,
    }
    if along == "x":
        ax.axhline(value, **settings)
    elif along == "y":
        ax.axvline(value, **settings)
    else:
        raise ConfigError(f"a line along {along!r} was asked for: pass 'x' or 'y'")


def end_mark(ax: Axes, x: float, y: float, *, style: SeriesStyle, means: str) -> Line2D:
    """Mark with a cross where a series ends, and say why in the legend."""
    (artist,) = ax.plot(
        [x],
        [y],
        color=style.colour,
        linestyle="none",
        marker="x",
        markersize=7.5,
        markeredgewidth=1.8,
        label=_label(None, means),
        zorder=2.8,
        clip_on=False,
    )
    return artist


def _draw_points(
    ax: Axes,
    x: np.ndarray,
    y: np.ndarray,
    hollow: np.ndarray,
    style: SeriesStyle,
    line: bool,
    size: float,
    means: str | None,
) -> Line2D:
    shared: dict[str, Any] = {"color": style.colour, "markersize": size}
    shared["marker"] = style.marker
    (artist,) = ax.plot(
        x,
        y,
        linestyle=style.line if line else "none",
        linewidth=_LINE_WIDTH,
        markevery=np.flatnonzero(~hollow).tolist(),
        markeredgewidth=_EDGES.get(style.marker, 0.0),
        zorder=2.5,
        **shared,
    )
    if hollow.any():
        ax.plot(
            x[hollow],
            y[hollow],
            linestyle="none",
            markerfacecolor=BACKGROUND,
            markeredgewidth=1.2,
            label=_label(None, means),
            # Large markers surround others and must not hide them.
            zorder=2.6 if size <= _MARKER_SIZE else 2.3,
            **shared,
        )
    return artist


def _label(label: str | None, means: str | None = None) -> str:
    """Return the label of a mark, or else its meaning in a form that legends skip."""
    if label is not None:
        return label
    return "_nolegend_" if means is None else _PREFIX + means


def _column(name: str, values: Values) -> np.ndarray:
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1:
        raise ConfigError(
            f"{name} has {column.ndim} dimensions, wanted 1: pass one series at a time"
        )
    return column


def meaning(mark: Artist) -> str | None:
    """Return the meaning of a mark, None if it has none."""
    label = str(mark.get_label())
    return label.removeprefix(_PREFIX) if label.startswith(_PREFIX) else None


def meaning_entries(panels: Iterable[Axes]) -> list[Line2D]:
    """Return one legend entry, in the muted colour, for each meaning in the panels."""
    entries: dict[str, Line2D] = {}
    for panel in panels:
        for mark in panel.lines:
            words = meaning(mark)
            if words is not None and words not in entries:
                entries[words] = _entry(mark, words)
    return list(entries.values())


def is_hollow(mark: Line2D) -> bool:
    """Return whether the markers of a line are hollow."""
    return str(mark.get_markerfacecolor()).lower() == BACKGROUND.lower()


def _entry(mark: Line2D, label: str) -> Line2D:
    """Return a copy of a mark without data, with a marker that no series uses."""
    marker = mark.get_marker()
    series = marker not in ("None", "none", "", None, "x")
    entry = Line2D([], [], color=MUTED, label=label)
    entry.set_linestyle(mark.get_linestyle())
    entry.set_linewidth(mark.get_linewidth())
    if mark.is_dashed():
        entry.set_linestyle(_DASHED)
    entry.set_marker("o" if series else str(marker))
    entry.set_markersize(mark.get_markersize())
    entry.set_markeredgewidth(mark.get_markeredgewidth())
    if is_hollow(mark):
        entry.set_markerfacecolor(BACKGROUND)
    return entry

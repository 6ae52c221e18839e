"""The marks of the house: measured series, predicted curves, reference lines.

Some marks mean the same whatever their series: a hollow one is a bound, a dashed line
a prediction, a cross an end. They carry their meaning as ``means``, and a legend that
is added afterwards says it once, in muted ink.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from theodolite.core import ConfigError
from theodolite.figures.meanings import set_meaning
from theodolite.figures.series import SeriesStyle
from theodolite.figures.style import INK, PAPER

Values = Sequence[float] | Sequence[int] | np.ndarray

_LINE_WIDTH = 1.6
_MARKER_SIZE = 5.0
_DASHED = (0, (4, 2))
# Edges of markers that are too thin without one.
_EDGES = {"x": 1.6, "P": 0.6, "X": 0.6}


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
    xs, ys = column("x", x), column("mean", mean)
    spread = np.zeros_like(ys) if error is None else column("error", error)
    hollow = np.zeros(ys.size, bool) if bound is None else np.asarray(bound, bool)
    for name, found in (("mean", ys), ("error", spread), ("bound", hollow)):
        if found.size != xs.size:
            raise ConfigError(
                f"{xs.size} abscissae but {found.size} values of {name}: "
                "pass one for each"
            )
    keep = np.isfinite(xs) & np.isfinite(ys)
    xs, ys, spread, hollow = xs[keep], ys[keep], spread[keep], hollow[keep]
    spread = np.where(np.isfinite(spread), spread, 0.0)
    if spread.any():
        _draw_error(ax, xs, ys, spread, style, kind)
    drawn = _draw_points(ax, xs, ys, hollow, style, line, marker_size, means)
    drawn.set_label("_nolegend_" if label is None else label)
    if ends and xs.size:
        end_mark(ax, xs[-1], ys[-1], style=style, means=ends)
    return drawn


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
    (drawn,) = ax.plot(
        column("x", x),
        column("y", y),
        color=style.colour,
        linestyle=_DASHED,
        linewidth=_LINE_WIDTH,
        label="_nolegend_" if label is None else label,
        zorder=2.2,
    )
    if label is None:
        set_meaning(drawn, means)
    return drawn


def line(
    ax: Axes, x: Values, y: Values, *, style: SeriesStyle, label: str | None = None
) -> Line2D:
    """Draw a series of many points: its line alone, without markers."""
    (drawn,) = ax.plot(
        column("x", x),
        column("y", y),
        color=style.colour,
        linestyle=style.line,
        linewidth=_LINE_WIDTH,
        label="_nolegend_" if label is None else label,
        zorder=2.4,
    )
    return drawn


def rule(ax: Axes, value: float, *, label: str | None = None, along: str = "x") -> None:
    """Draw a thin reference line, along ``x`` (horizontal) or along ``y``."""
    settings: dict[str, Any] = {
        "color": INK,
        "linewidth": 0.9,
        "linestyle": (0, (1, 2)),
        "label": "_nolegend_" if label is None else label,
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
    (drawn,) = ax.plot(
        [x],
        [y],
        color=style.colour,
        linestyle="none",
        marker="x",
        markersize=7.5,
        markeredgewidth=1.8,
        label="_nolegend_",
        zorder=2.8,
        clip_on=False,
    )
    set_meaning(drawn, means)
    return drawn


def _draw_error(
    ax: Axes,
    x: np.ndarray,
    y: np.ndarray,
    spread: np.ndarray,
    style: SeriesStyle,
    kind: str,
) -> None:
    if kind == "band":
        ax.fill_between(
            x, y - spread, y + spread, color=style.colour, alpha=0.18, linewidth=0
        )
        return
    ax.errorbar(
        x,
        y,
        yerr=spread,
        fmt="none",
        ecolor=style.colour,
        elinewidth=1.0,
        capsize=2.5,
        capthick=1.0,
        label="_nolegend_",
    )


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
    shared: dict[str, Any] = {
        "color": style.colour,
        "marker": style.marker,
        "markersize": size,
    }
    (drawn,) = ax.plot(
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
        (open_ones,) = ax.plot(
            x[hollow],
            y[hollow],
            linestyle="none",
            markerfacecolor=PAPER,
            markeredgewidth=1.2,
            label="_nolegend_",
            # Large ones stand around others and must not hide them.
            zorder=2.6 if size <= _MARKER_SIZE else 2.3,
            **shared,
        )
        set_meaning(open_ones, means)
    return drawn


def column(name: str, values: Values) -> np.ndarray:
    """Return values as one column of floats, or refuse."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise ConfigError(
            f"{name} has {found.ndim} dimensions, wanted 1: pass one series at a time"
        )
    return found

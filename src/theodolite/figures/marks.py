"""The marks of the house: measured series, predicted curves, reference lines."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from theodolite.core import ConfigError
from theodolite.figures.series import SeriesStyle
from theodolite.figures.style import INK

Values = Sequence[float] | Sequence[int] | np.ndarray

_LINE_WIDTH = 1.6
_MARKER_SIZE = 5.0


def band(
    ax: Axes,
    x: Values,
    mean: Values,
    error: Values | None = None,
    *,
    style: SeriesStyle,
    label: str | None = None,
    bound: Sequence[bool] | np.ndarray | None = None,
    kind: Literal["band", "bars"] = "band",
    line: bool = True,
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
        kind: A shaded band, or a bar at every point.
        line: Whether to join the points.
    """
    xs, ys = _column("x", x), _column("mean", mean)
    spread = np.zeros_like(ys) if error is None else _column("error", error)
    hollow = np.zeros(ys.size, bool) if bound is None else np.asarray(bound, bool)
    for name, column in (("mean", ys), ("error", spread), ("bound", hollow)):
        if column.size != xs.size:
            raise ConfigError(
                f"{xs.size} abscissae but {column.size} values of {name}: "
                "pass one for each"
            )
    keep = np.isfinite(xs) & np.isfinite(ys)
    xs, ys, spread, hollow = xs[keep], ys[keep], spread[keep], hollow[keep]
    spread = np.where(np.isfinite(spread), spread, 0.0)
    if spread.any():
        _draw_error(ax, xs, ys, spread, style, kind)
    drawn = _draw_points(ax, xs, ys, hollow, style, line)
    drawn.set_label("_nolegend_" if label is None else label)
    return drawn


def curve(
    ax: Axes, x: Values, y: Values, *, style: SeriesStyle, label: str | None = None
) -> Line2D:
    """Draw a prediction: a dashed line without markers, in its series' colour."""
    (drawn,) = ax.plot(
        _column("x", x),
        _column("y", y),
        color=style.colour,
        linestyle=(0, (4, 2)),
        linewidth=_LINE_WIDTH,
        label="_nolegend_" if label is None else label,
        zorder=2.2,
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
) -> Line2D:
    shared: dict[str, Any] = {
        "color": style.colour,
        "marker": style.marker,
        "markersize": _MARKER_SIZE,
    }
    (drawn,) = ax.plot(
        x,
        y,
        linestyle=style.line if line else "none",
        linewidth=_LINE_WIDTH,
        markevery=np.flatnonzero(~hollow).tolist(),
        markeredgewidth=0.0,
        zorder=2.5,
        **shared,
    )
    if hollow.any():
        ax.plot(
            x[hollow],
            y[hollow],
            linestyle="none",
            markerfacecolor="white",
            markeredgewidth=1.2,
            label="_nolegend_",
            zorder=2.6,
            **shared,
        )
    return drawn


def _column(name: str, values: Values) -> np.ndarray:
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1:
        raise ConfigError(
            f"{name} has {column.ndim} dimensions, wanted 1: pass one series at a time"
        )
    return column

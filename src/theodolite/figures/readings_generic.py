"""Readings of any kind: their first quantities, each along its dimensions."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from theodolite.core import Reading

from .axes import log_axis
from .marks import band
from .style import SeriesStyle, new_figure, series_style

# Most panels of one figure, and most points of a series that have markers.
_PANELS, _MARKED = 4, 60
_ENDS = ("_low", "_high")


def draw_generic(reading: Reading) -> Figure:
    """Draw the first quantities of a reading; single numbers share one panel."""
    names = _quantities(reading)
    lists = [name for name in names if reading.dims[name]][:_PANELS]
    numbers = [name for name in names if not reading.dims[name]]
    shown = lists if len(lists) == _PANELS or not numbers else [*lists, ""]
    columns = min(len(shown), 2) or 1
    rows = -(-len(shown) // columns) or 1
    width = 6.6 if columns == 2 else 5.2
    figure, panels = new_figure(width, 2.9 * rows, panels=(rows, columns))
    for panel, name in zip(panels, shown, strict=False):
        if name:
            _draw_list(panel, reading, name)
        else:
            _draw_numbers(panel, reading, numbers)
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    return figure


def error_of(reading: Reading, name: str) -> np.ndarray | None:
    """Return the error of a quantity in its shape, None where there is none."""
    field = reading.error_of.get(name)
    if field is None:
        return None
    value = np.asarray(getattr(reading, name), np.float64)
    return np.broadcast_to(np.asarray(getattr(reading, field), np.float64), value.shape)


def single_style() -> SeriesStyle:
    """Return the look of a panel's only series."""
    return series_style("measured", ("measured",))


def draw_line(
    panel: Axes, x: Any, y: np.ndarray, error: np.ndarray | None, **settings: Any
) -> None:
    """Draw a list with its error: bars where points are few, a band where many."""
    few = len(y) <= _MARKED
    drawn = band(
        panel,
        x,
        y,
        error,
        **{"style": single_style(), "kind": "bars" if few else "band", **settings},
    )
    if not few:
        drawn.set_marker("")


def wants_log_axis(values: np.ndarray) -> bool:
    """Return whether all values are positive and span a factor of 100."""
    kept = values[np.isfinite(values)]
    return bool(kept.size > 1 and kept.min() > 0 and kept.max() > 100 * kept.min())


def _draw_numbers(panel: Axes, reading: Reading, names: list[str]) -> None:
    """Draw numbers, each divided by its size, with their intervals."""
    names = names[:8][::-1]
    style = single_style()
    for place, name in enumerate(names):
        value = float(getattr(reading, name))
        error = error_of(reading, name)
        low, high = (getattr(reading, name + end, None) for end in _ENDS)
        if low is None or high is None:
            half = 0.0 if error is None else float(error)
            low, high = value - half, value + half
        size = abs(value) if np.isfinite(value) and value else 1.0
        ends = np.clip(np.nan_to_num([low, high], nan=value) / size, -1, 3)
        panel.plot(ends, [place, place], color=style.colour, linewidth=3, alpha=0.35)
        panel.plot([np.sign(value)], [place], marker="o", color=style.colour)
        interval = "" if high == low else f"  [{low:.4g}, {high:.4g}]"
        panel.annotate(
            f"{value:.4g}{interval}",
            (np.sign(value) if np.isfinite(value) else 0, place),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    panel.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    panel.set_ylim(-0.6, len(names) - 0.3)
    panel.set_xlabel("value over its own size")
    panel.margins(x=0.2)


def _quantities(reading: Reading) -> list[str]:
    """Return the quantities to draw: no errors, ends of intervals or empty ones."""
    errors = set(reading.error_of.values())
    ends = {name + end for name in reading.dims for end in _ENDS}
    return [
        name
        for name in reading.dims
        if name not in errors | ends and np.size(getattr(reading, name))
    ]


def _draw_list(panel: Axes, reading: Reading, name: str) -> None:
    value = np.asarray(getattr(reading, name), np.float64)
    dims = reading.dims[name]
    labels = reading.coordinates()
    if value.ndim > 1:
        image = panel.imshow(value.reshape(len(value), -1), aspect="auto")
        panel.figure.colorbar(image, ax=panel, label=name)
        panel.set(xlabel=dims[1], ylabel=dims[0])
        panel.grid(False)
        return
    places = labels[dims[0]]
    named = any(isinstance(place, str) for place in places)
    x = range(len(places)) if named else places
    draw_line(panel, x, value, error_of(reading, name), line=not named)
    if named:
        label_ticks(panel, [str(place) for place in places])
    if wants_log_axis(value):
        log_axis(panel, "y")
    panel.set(xlabel=dims[0].replace("_", " "), ylabel=name.replace("_", " "))


def label_ticks(panel: Axes, names: list[str]) -> None:
    """Write at most 12 of the names along the horizontal axis."""
    every = -(-len(names) // 12)
    kept = range(0, len(names), every)
    panel.set_xticks(list(kept), [names[k][:24] for k in kept], rotation=30, ha="right")

"""Readings with a number a layer, a sample or a point: blocks, margins, energies."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from theodolite.core import ConfigError
from theodolite.figures.axes import log_axis
from theodolite.figures.marks import rule
from theodolite.figures.readings_generic import (
    draw_line,
    error_of,
    name_places,
    only_style,
    spread_widely,
)
from theodolite.figures.style import new_figure


def draw_blocks(reading: Any) -> Figure:
    """Draw the first quantity of every block, one above the other."""
    if not len(reading):
        raise ConfigError("no blocks were measured: name some with blocks=…")
    first = reading.readings[0]
    name = next(iter(first.dims))
    values = [_leading(found, name) for found in reading.readings]
    errors = [_leading_error(found, name) for found in reading.readings]
    figure, (panel,) = new_figure(6.2, 1.1 + 0.24 * len(values))
    places, style = np.arange(len(values))[::-1], only_style()
    panel.errorbar(
        values, places, xerr=errors, fmt="o", color=style.colour, capsize=2.5
    )
    panel.set_yticks(places, list(reading.blocks))
    panel.set_ylim(-0.7, len(values) - 0.3)
    panel.grid(axis="x")
    panel.grid(visible=False, axis="y")
    if spread_widely(np.array(values)):
        log_axis(panel, "x")
    ranked = " (the first of its list)" if first.dims[name] else ""
    panel.set_xlabel(name.replace("_", " ") + ranked)
    return figure


def draw_margins(reading: Any) -> Figure:
    """Draw the norms of a classifier's layers, and its margins by size."""
    figure, (left, right) = new_figure(6.6, 3.2, panels=(1, 2))
    norms = np.asarray(reading.layer_norms)
    error = error_of(reading, "layer_norms")
    draw_line(left, np.arange(len(norms)), norms, error, line=False)
    left.set_xlabel("layer")
    name_places(left, list(reading.names))
    left.set_ylabel("norm of the layer")
    if spread_widely(norms):
        log_axis(left, "y")
    margins = np.sort(np.asarray(reading.margins))
    share = np.arange(1, len(margins) + 1) / max(len(margins), 1)
    right.step(margins, share, where="post", color=only_style().colour)
    rule(right, 0.0, along="y")
    right.set_xlabel(r"margin of the normalised network")
    right.set_ylabel("fraction up to here")
    return figure


def draw_points(reading: Any) -> Figure:
    """Draw critical points by energy and index."""
    figure, (panel,) = new_figure(5.2, 3.2)
    panel.plot(
        reading.energies,
        reading.indices,
        linestyle="none",
        marker="o",
        color=only_style().colour,
        alpha=0.7,
    )
    panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    panel.set_xlabel("energy")
    panel.set_ylabel("index")
    return figure


def _leading(found: Any, name: str) -> float:
    values = np.asarray(getattr(found, name), np.float64).reshape(-1)
    return float(values[0]) if values.size else float("nan")


def _leading_error(found: Any, name: str) -> float:
    error = error_of(found, name)
    value = 0.0 if error is None or not error.size else float(error.reshape(-1)[0])
    return abs(value) if np.isfinite(value) else 0.0

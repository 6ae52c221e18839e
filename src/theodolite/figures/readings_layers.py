"""Readings along layers, samples or steps: blocks, margins, points, trajectories."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from theodolite.core import ConfigError, Rows

from .axes import log_axis
from .legends import legend
from .marks import reference_line
from .readings_generic import (
    draw_line,
    error_of,
    label_ticks,
    single_style,
    wants_log_axis,
)
from .style import PALETTE, new_figure, series_style

# Most panels of a trajectory, the loss included.
_PANELS = 4


def draw_trajectory(reading: Any) -> Figure:
    """Draw the loss along the steps, and below it what probes measured."""
    probed = _probed(reading.probe_rows)[: _PANELS - 1]
    figure, panels = new_figure(
        6.0, 3.2 + 1.7 * len(probed), panels=(1 + len(probed), 1), share_x=True
    )
    _draw_loss(panels[0], reading)
    for panel, name in zip(panels[1:], probed, strict=True):
        _draw_probe(panel, reading.probe_rows.where(quantity=name), name)
    panels[-1].set_xlabel("step")
    return figure


def _draw_loss(panel: Axes, reading: Any) -> None:
    """Draw losses, with a cross where the run was retired."""
    loss = np.asarray(reading.loss)
    draw_line(panel, reading.steps, loss, None, style=single_style())
    if reading.diverged_at is not None:
        finite = loss[np.isfinite(loss)]
        panel.plot(
            [reading.diverged_at],
            [finite[-1] if finite.size else 0.0],
            marker="x",
            markersize=9,
            markeredgewidth=2,
            linestyle="none",
            color=PALETTE["vermilion"],
            label="diverged",
        )
        legend(panel)
    if wants_log_axis(loss):
        log_axis(panel, "y")
    panel.set_ylabel("loss")


def _probed(rows: Rows) -> list[str]:
    """Return the quantities that have one number per step, in their order."""
    counts: dict[str, list[Any]] = {}
    for row in rows:
        counts.setdefault(row["quantity"], []).append(row["step"])
    return [name for name, steps in counts.items() if len(set(steps)) == len(steps)]


def _draw_probe(panel: Axes, rows: Rows, name: str) -> None:
    errors = rows.values("error")
    shown = errors if np.isfinite(errors).any() else None
    draw_line(panel, rows.values("step"), rows.values(), shown)
    if wants_log_axis(rows.values()):
        log_axis(panel, "y")
    panel.set_ylabel(name.replace("_", " "))


def draw_sharpness(reading: Any) -> Figure:
    """Draw the largest eigenvalues along the steps, with certified errors."""
    figure, (panel,) = new_figure(6.0, 3.2)
    count = reading.eigenvalues.shape[1]
    names = tuple(f"rank {k + 1}" for k in range(count))
    for k, name in enumerate(names):
        draw_line(
            panel,
            reading.steps,
            reading.eigenvalues[:, k],
            reading.errors[:, k],
            style=series_style(name, names),
            label=name if count > 1 else None,
        )
    reference_line(panel, 0.0)
    panel.set(xlabel="step", ylabel="largest eigenvalue" + ("s" if count > 1 else ""))
    if count > 1:
        legend(panel)
    return figure


def draw_blocks(reading: Any) -> Figure:
    """Draw the first quantity of every block, one above the other."""
    if not len(reading):
        raise ConfigError("no blocks were measured: name some with blocks=…")
    first = reading.readings[0]
    name = next(iter(first.dims))
    values = [_first(getattr(one, name)) for one in reading.readings]
    errors = [_first(error_of(one, name)) for one in reading.readings]
    errors = [abs(error) if np.isfinite(error) else 0.0 for error in errors]
    figure, (panel,) = new_figure(6.2, 1.1 + 0.24 * len(values))
    places, style = np.arange(len(values))[::-1], single_style()
    panel.errorbar(
        values, places, xerr=errors, fmt="o", color=style.colour, capsize=2.5
    )
    panel.set_yticks(places, list(reading.blocks))
    panel.set_ylim(-0.7, len(values) - 0.3)
    panel.grid(axis="x")
    panel.grid(visible=False, axis="y")
    if wants_log_axis(np.array(values)):
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
    label_ticks(left, list(reading.names))
    left.set_ylabel("norm of the layer")
    if wants_log_axis(norms):
        log_axis(left, "y")
    margins = np.sort(np.asarray(reading.margins))
    share = np.arange(1, len(margins) + 1) / max(len(margins), 1)
    right.step(margins, share, where="post", color=single_style().colour)
    reference_line(right, 0.0, along="y")
    right.set(xlabel=r"margin of the normalised network", ylabel="fraction up to here")
    return figure


def draw_points(reading: Any) -> Figure:
    """Draw critical points by energy and index."""
    figure, (panel,) = new_figure(5.2, 3.2)
    panel.plot(
        reading.energies,
        reading.indices,
        linestyle="none",
        marker="o",
        color=single_style().colour,
        alpha=0.7,
    )
    panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    panel.set(xlabel="energy", ylabel="index")
    return figure


def _first(values: Any) -> float:
    flat = np.ravel(np.asarray(values, np.float64))
    return float(flat[0]) if flat.size else float("nan")

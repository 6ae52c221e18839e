"""What was read along a training: losses and the largest eigenvalues."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from theodolite.core import Rows
from theodolite.figures.axes import legend, log_axis
from theodolite.figures.marks import rule
from theodolite.figures.readings_generic import draw_line, only_style, spread_widely
from theodolite.figures.series import series_style
from theodolite.figures.style import PALETTE, new_figure

# Panels of a training, the loss among them, at most.
_PANELS = 4


def draw_trajectory(reading: Any) -> Figure:
    """Draw the loss along the steps, and below what probes measured on the way."""
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
    draw_line(panel, reading.steps, loss, None, style=only_style())
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
    if spread_widely(loss):
        log_axis(panel, "y")
    panel.set_ylabel("loss")


def _probed(rows: Rows) -> list[str]:
    """Return the quantities of which there is one number a step, in their order."""
    counts: dict[str, list[Any]] = {}
    for row in rows:
        counts.setdefault(row["quantity"], []).append(row["step"])
    return [name for name, steps in counts.items() if len(set(steps)) == len(steps)]


def _draw_probe(panel: Axes, rows: Rows, name: str) -> None:
    errors = rows.values("error")
    shown = errors if np.isfinite(errors).any() else None
    draw_line(panel, rows.values("step"), rows.values(), shown)
    if spread_widely(rows.values()):
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
    rule(panel, 0.0)
    panel.set_xlabel("step")
    panel.set_ylabel("largest eigenvalue" + ("s" if count > 1 else ""))
    if count > 1:
        legend(panel)
    return figure

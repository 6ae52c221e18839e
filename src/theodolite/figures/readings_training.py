"""What was read along a training: losses and the largest eigenvalues."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from theodolite.figures.axes import legend, log_axis
from theodolite.figures.marks import rule
from theodolite.figures.readings_generic import draw_line, only_style, spread_widely
from theodolite.figures.series import series_style
from theodolite.figures.style import PALETTE, new_figure


def draw_trajectory(reading: Any) -> Figure:
    """Draw the loss along the steps, with a cross where the run was retired."""
    figure, (panel,) = new_figure(6.0, 3.2)
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
    panel.set_xlabel("step")
    panel.set_ylabel("loss")
    return figure


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

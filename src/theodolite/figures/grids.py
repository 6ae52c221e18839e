"""A grid of training runs as a picture: a map of two axes, or lines along one."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from theodolite.core import ConfigError, unknown_name

from .axes import log_axis
from .legends import legend
from .marks import band
from .readings_generic import single_style, wants_log_axis
from .style import PALETTE, house_style, new_figure, series_style


@house_style()
def draw_grid(
    grid: Any, *, x: str | None = None, y: str | None = None, title: str | None = None
) -> Figure:
    """Draw the final loss of a grid, the median over all axes that are not shown.

    Args:
        grid: Result of ``train_grid``.
        x: Axis along the horizontal; the rate by default, or the first that varies.
        y: Axis along the vertical of a map; the next that varies and is not the seed.
        title: Above the figure.

    Returns:
        A map with crosses where half of the runs or more diverged, or, where one axis
        alone varies, a line with the spread between quartiles.
    """
    across = _axis(grid, x, ())
    up = _axis(grid, y, (across,)) if y or _left(grid, (across,)) else None
    figure, (panel,) = new_figure(5.6, 3.6)
    if up is None:
        _line(panel, grid, across)
    else:
        _map(figure, panel, grid, across, up)
    panel.set_xlabel(across)
    panel.set_title(title or f"final loss after {grid.steps:,} steps")
    return figure


def _left(grid: Any, taken: tuple[str, ...]) -> list[str]:
    """Return the axes that vary, rates first and seeds never."""
    names = [n for n, values in grid.axes.items() if len(values) > 1]
    names = [n for n in names if n not in taken and n != "seed"]
    return sorted(names, key=lambda name: name != "lr")


def _axis(grid: Any, wanted: str | None, taken: tuple[str, ...]) -> str:
    if wanted is not None and wanted not in grid.axes:
        raise unknown_name("axis", wanted, grid.axes)
    if wanted in taken:
        raise ConfigError(f"axis {wanted!r} was named twice: name two")
    left = [wanted] if wanted else [*_left(grid, taken), *grid.axes]
    if not left:
        raise ConfigError("the grid has no axes: give train_grid one that varies")
    return str(left[0])


def _over(grid: Any, values: np.ndarray, kept: tuple[str, ...]) -> np.ndarray:
    """Return values with the kept axes first, in order, and the others as one axis."""
    order = [grid.axis(name) for name in kept]
    rest = [k for k in range(values.ndim) if k not in order]
    moved = values.transpose(*order, *rest)
    return moved.reshape(*moved.shape[: len(order)], -1)


def _map(figure: Figure, panel: Axes, grid: Any, across: str, up: str) -> None:
    runs = _over(grid, grid.final_loss, (up, across))
    lost = np.mean(~np.isfinite(runs), axis=2) >= 0.5
    loss = _medians(runs)
    norm = LogNorm() if wants_log_axis(loss[np.isfinite(loss)]) else None
    image = panel.imshow(loss, origin="lower", aspect="auto", norm=norm)
    figure.colorbar(image, ax=panel, label="median final loss")
    high, right = np.nonzero(lost)
    if high.size:
        panel.plot(right, high, "x", color=PALETTE["vermilion"], label="diverged")
        panel.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderpad=0.1)
    for axis, name in ((panel.xaxis, across), (panel.yaxis, up)):
        values = grid.axes[name]
        labels = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in values]
        every = -(-len(labels) // 10)
        axis.set_ticks(range(0, len(labels), every), labels[::every])
    panel.grid(False)
    panel.set_ylabel(up)


def _line(panel: Axes, grid: Any, across: str) -> None:
    runs = _over(grid, grid.final_loss, (across,))
    centre, places = _medians(runs), list(grid.axes[across])
    numbers = all(isinstance(place, int | float) for place in places)
    x = np.array(places, float) if numbers else np.arange(len(places))
    style = single_style()
    low, high = (_medians(runs, share) for share in (0.25, 0.75))
    panel.fill_between(x, low, high, color=style.colour, alpha=0.18, linewidth=0)
    band(panel, x, centre, style=style, label="median")
    gone = ~np.isfinite(centre)
    if gone.any():
        cross = series_style("diverged", ("finished", "diverged"))
        base = float(np.nanmax(centre)) if not gone.all() else 1.0
        heights = np.full(gone.sum(), base)
        panel.plot(x[gone], heights, "x", color=cross.colour, label="diverged")
    if numbers and wants_log_axis(x):
        log_axis(panel, "x")
    if wants_log_axis(centre[~gone]):
        log_axis(panel, "y")
    if not numbers:
        panel.set_xticks(x, [str(place) for place in places])
    panel.set_ylabel("median final loss")
    legend(panel)


def _medians(runs: np.ndarray, share: float = 0.5) -> np.ndarray:
    """Return a quantile over the last axis, NaN where at least half is not finite."""
    lost = np.mean(~np.isfinite(runs), axis=-1) >= 0.5
    kept = np.where(np.isfinite(runs), runs, np.inf)
    quantiles = np.quantile(kept, share, axis=-1, method="lower")
    return np.where(lost, np.nan, quantiles)

"""Axes and legends: logarithmic scales with readable ticks, frameless keys."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogFormatterSciNotation,
    LogLocator,
    NullLocator,
)

from theodolite.core import ConfigError
from theodolite.figures.style import house_style


def log_axis(
    ax: Axes,
    which: Literal["x", "y"],
    *,
    base: float = 10.0,
    ticks: Sequence[float] | np.ndarray | None = None,
) -> None:
    """Make one axis logarithmic.

    Args:
        ax: Axes to change.
        which: The axis.
        base: Base of the scale and of its own ticks.
        ticks: Exact tick positions, such as the depths of a study; they are
            labelled with plain numbers and nothing else is marked.

    Example:
        >>> from theodolite.figures import new_figure
        >>> figure, (ax,) = new_figure()
        >>> log_axis(ax, "x", base=2, ticks=[2, 4, 8])
        >>> [str(label.get_text()) for label in ax.get_xticklabels()]
        ['2', '4', '8']
    """
    if which not in ("x", "y"):
        raise ConfigError(f"axis {which!r} was asked for: pass 'x' or 'y'")
    axis = ax.xaxis if which == "x" else ax.yaxis
    if which == "x":
        ax.set_xscale("log", base=base)
    else:
        ax.set_yscale("log", base=base)
    axis.set_minor_locator(NullLocator())
    if ticks is None:
        axis.set_major_locator(LogLocator(base=base, numticks=8))
        axis.set_major_formatter(LogFormatterSciNotation(base=base))
        return
    wanted = np.asarray(ticks, dtype=np.float64)
    if wanted.size == 0 or not (wanted > 0).all():
        raise ConfigError(
            f"ticks {wanted.tolist()} do not fit a logarithmic axis: "
            "pass positive numbers"
        )
    axis.set_major_locator(FixedLocator(wanted.tolist()))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def legend(ax: Axes, *, title: str | None = None, outside: bool = False) -> Legend:
    """Add a frameless legend, where it hides least or to the right of the panel."""
    with house_style():
        if outside:
            return ax.legend(title=title, loc="upper left", bbox_to_anchor=(1.01, 1.0))
        return ax.legend(title=title, loc="best")

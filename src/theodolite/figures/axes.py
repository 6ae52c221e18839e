"""Axes: logarithmic scales with readable ticks, and counts from zero."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogFormatterSciNotation,
    LogLocator,
    NullLocator,
)

from theodolite.core import ConfigError
from theodolite.figures.legends import legend as legend
from theodolite.figures.ticks import DecadeFormatter, DecadeLocator, written

Which = Literal["x", "y"]


def log_axis(
    ax: Axes,
    which: Which,
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
    axis = _axis(ax, which)
    if which == "x":
        ax.set_xscale("log", base=base)
    else:
        ax.set_yscale("log", base=base)
    axis.set_minor_locator(NullLocator())
    if ticks is None and base == 10:
        axis.set_major_locator(DecadeLocator(exponents=False))
        axis.set_major_formatter(DecadeFormatter(exponents=False))
        return
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


def power_axis(ax: Axes, which: Which) -> None:
    """Label an axis that holds logarithms to base ten with the numbers themselves.

    Means and spreads of logarithms are drawn so beside axes with powers of ten, and
    no label has to say that a logarithm was taken.

    Example:
        >>> from theodolite.figures import new_figure
        >>> figure, (ax,) = new_figure()
        >>> ax.set_ylim(-3, 0)
        (-3.0, 0.0)
        >>> power_axis(ax, "y")
        >>> [str(label.get_text()) for label in ax.get_yticklabels()]
        ['$10^{-3}$', '$10^{-2}$', '$10^{-1}$', '$10^{0}$']
    """
    axis = _axis(ax, which)
    axis.set_major_locator(DecadeLocator(exponents=True))
    axis.set_major_formatter(DecadeFormatter(exponents=True))


def count_axis(ax: Axes, which: Which = "x") -> None:
    """Make an axis of steps or epochs: zero, one, and logarithmic from there on.

    Call it once all is drawn.
    """
    axis = _axis(ax, which)
    limits = ax.get_xlim() if which == "x" else ax.get_ylim()
    powers = range(max(1, int(np.ceil(np.log10(max(limits[1], 2)))) + 1))
    keep = powers[:: 2 if len(powers) > 5 else 1]
    if which == "x":
        ax.set_xscale("symlog", linthresh=1)
        ax.set_xlim(left=0)
    else:
        ax.set_yscale("symlog", linthresh=1)
        ax.set_ylim(bottom=0)
    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(FixedLocator([0.0, *(10.0**power for power in keep)]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _counted(value)))


def _counted(value: float) -> str:
    """Return a power of ten, or zero, as a label."""
    return f"{value:g}" if value < 1e4 else written(np.log10(value), narrow=False)


def _axis(ax: Axes, which: str) -> Axis:
    if which not in ("x", "y"):
        raise ConfigError(f"axis {which!r} was asked for: pass 'x' or 'y'")
    return ax.xaxis if which == "x" else ax.yaxis

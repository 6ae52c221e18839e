"""Axes: logarithmic scales with readable ticks, counts from zero, limits."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FixedLocator,
    Formatter,
    FuncFormatter,
    Locator,
    LogFormatterSciNotation,
    LogLocator,
    MaxNLocator,
    NullLocator,
)

from theodolite.core import ConfigError

from .export import colour_of, series_of
from .marks import end_mark
from .style import SeriesStyle

Which = Literal["x", "y"]
Limits = tuple[float, float]

_POWERS = 3  # an axis with this many powers of ten needs no ticks between them
_FEW = 0.9  # decades below which 1, 2 and 5 are too few ticks
_PLAIN = 4  # numbers with at most this many digits are written out
# Each figure must fill this share of a common axis, and the two must overlap by this
# share of the smaller.
_ENOUGH = 1 / 3


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
        ticks: Exact tick positions, such as the depths of a study, labelled with
            plain numbers; there are no other ticks.

    Example:
        >>> from theodolite.figures import new_figure
        >>> figure, (ax,) = new_figure()
        >>> log_axis(ax, "x", base=2, ticks=[2, 4, 8])
        >>> [str(label.get_text()) for label in ax.get_xticklabels()]
        ['2', '4', '8']
    """
    axis = _axis(ax, which)
    (ax.set_xscale if which == "x" else ax.set_yscale)("log", base=base)
    axis.set_minor_locator(NullLocator())
    if ticks is None and base == 10:
        axis.set_major_locator(_DecadeLocator(exponents=False))
        axis.set_major_formatter(_DecadeFormatter(exponents=False))
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
    """Label an axis of base-ten logarithms with the numbers themselves.

    Use it to draw means and spreads of logarithms: no label has to say that a
    logarithm was taken.

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
    axis.set_major_locator(_DecadeLocator(exponents=True))
    axis.set_major_formatter(_DecadeFormatter(exponents=True))


def count_axis(ax: Axes, which: Which = "x") -> None:
    """Make an axis of steps or epochs: zero, one, and logarithmic from there on.

    Call it after all data is drawn.
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

    def label(value: float, _: object) -> str:
        plain = value < 1e4
        return f"{value:g}" if plain else _power_label(np.log10(value), narrow=False)

    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(FixedLocator([0.0, *(10.0**power for power in keep)]))
    axis.set_major_formatter(FuncFormatter(label))


def limit_y(
    ax: Axes, *, means: str, bottom: float | None = None, top: float | None = None
) -> None:
    """Limit a finished panel from above and below, and mark where series leave it.

    Limits that contain all data change nothing.

    Args:
        ax: The panel.
        means: Meaning of the mark, for the legend.
        bottom: Least value to show.
        top: Greatest value to show.
    """
    low, high = ax.get_ylim()
    floor = low if bottom is None else max(low, bottom)
    ceiling = high if top is None else min(high, top)
    ax.set_ylim(floor, ceiling)
    for line in list(series_of(ax)):
        for x, y in _exits(line, floor, ceiling):
            style = SeriesStyle(colour_of(line), "x", "solid")
            end_mark(ax, x, y, style=style, means=means)


def _exits(line: Line2D, low: float, high: float) -> list[tuple[float, float]]:
    """Return the points where a line leaves the limits: the last ones inside.

    If the whole line is outside, return its first point, moved to the limit.
    """
    points = np.asarray(line.get_xydata(), float)
    points = points[np.isfinite(points).all(axis=1)]
    inside = (points[:, 1] >= low) & (points[:, 1] <= high)
    if len(points) and not inside.any():
        x, y = points[0]
        return [(float(x), float(np.clip(y, low, high)))]
    leaves = inside[:-1] & ~inside[1:]
    enters = ~inside[:-1] & inside[1:]
    places = np.flatnonzero(leaves).tolist() + (np.flatnonzero(enters) + 1).tolist()
    return [(float(points[k, 0]), float(points[k, 1])) for k in sorted(set(places))]


def match_limits(one: Figure, other: Figure) -> None:
    """Set equal limits on matching panels of two finished figures.

    Panels match if title and axis labels are equal, and no other panel of their figure
    has these. Other panels do not change, and neither do axes on which one of the two
    would be too small to read, or has another range.
    """
    theirs = _panels_by_name(other)
    for name, panel in _panels_by_name(one).items():
        partner = theirs.get(name)
        if panel is not None and partner is not None:
            _equal_limits(panel, partner)


def _panels_by_name(figure: Figure) -> dict[tuple[str, ...], Axes | None]:
    """Return panels by title and labels, None where several have the same."""
    panels: dict[tuple[str, ...], Axes | None] = {}
    for panel in figure.axes:
        place = panel.get_subplotspec()
        row = () if place is None else (str(place.rowspan.start),)
        title = panel.get_title(loc="left") or panel.get_title()
        name = (title, panel.get_xlabel(), panel.get_ylabel(), *row)
        panels[name] = None if name in panels else panel
    return panels


def _equal_limits(panel: Axes, other: Axes) -> None:
    scales = [(one.get_xscale(), one.get_yscale()) for one in (panel, other)]
    if scales[0] != scales[1]:
        return
    for name in ("x", "y"):
        first, second = (getattr(one, f"get_{name}lim")() for one in (panel, other))
        low, high = min(*first, *second), max(*first, *second)
        if not _fit(getattr(panel, f"{name}axis"), first, second):
            continue
        ends = (high, low) if first[0] > first[1] else (low, high)
        for one in (panel, other):
            getattr(one, f"set_{name}lim")(*ends)


def _fit(axis: Axis, first: Limits, second: Limits) -> bool:
    """Return whether two ranges overlap, and each fills enough of their union."""
    transform = axis.get_transform()  # such as the logarithm
    one, other = (
        transform.transform(np.asarray(limits, float)) for limits in (first, second)
    )
    whole = max(*one, *other) - min(*one, *other)
    shared = min(max(one), max(other)) - max(min(one), min(other))
    least = min(abs(one[1] - one[0]), abs(other[1] - other[0]))
    return bool(least >= _ENOUGH * whole and shared >= _ENOUGH * least)


def _axis(ax: Axes, which: str) -> Axis:
    if which not in ("x", "y"):
        raise ConfigError(f"axis {which!r} was asked for: pass 'x' or 'y'")
    return ax.xaxis if which == "x" else ax.yaxis


class _DecadeLocator(Locator):
    """Places ticks at powers of ten, at 1, 2, 5 or at even steps, as space allows.

    Args:
        exponents: Whether the axis holds base-ten logarithms rather than the
            numbers themselves.
    """

    def __init__(self, *, exponents: bool) -> None:
        self.exponents = exponents

    def __call__(self) -> list[float]:
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks between two limits, fewer along a horizontal axis."""
        if not self.exponents:
            vmin, vmax = np.log10(np.maximum([vmin, vmax], 1e-300))
        horizontal = getattr(self.axis, "axis_name", "y") == "x"
        ticks = _ticks(float(vmin), float(vmax), horizontal=horizontal)
        ticks = ticks[(ticks >= vmin - 1e-9) & (ticks <= vmax + 1e-9)]
        return (ticks if self.exponents else 10.0**ticks).tolist()


class _DecadeFormatter(Formatter):
    """Writes numbers of a few digits plainly, others as powers of ten.

    Args:
        exponents: Whether the axis holds base-ten logarithms.
    """

    def __init__(self, *, exponents: bool) -> None:
        self.exponents = exponents

    def __call__(self, x: float, pos: int | None = None) -> str:
        power = x if self.exponents else np.log10(x)
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]
        if not self.exponents:
            low, high = np.log10([max(low, 1e-300), max(high, 1e-300)])
        return _power_label(float(power), narrow=len(_powers(low, high)) < _POWERS)


def _power_label(power: float, *, narrow: bool) -> str:
    """Return ten to a power as a label."""
    whole = round(power)
    if narrow and abs(power) < _PLAIN:
        return f"{10.0**power:.4g}"
    if abs(power - whole) < 1e-6:
        return f"$10^{{{whole}}}$"
    base = int(np.floor(power))
    return rf"${10.0 ** (power - base):.3g}\times10^{{{base}}}$"


def _powers(low: float, high: float) -> np.ndarray:
    return np.arange(np.ceil(low - 1e-9), high + 1e-9)


def _ticks(low: float, high: float, *, horizontal: bool) -> np.ndarray:
    """Return powers of ten between two, as many as are easily read."""
    powers = _powers(low, high)
    if len(powers) >= _POWERS:
        step = max(1, int(np.ceil((high - low) / 7)))
        return powers[powers % step == 0]
    if high - low >= _FEW:
        whole = np.arange(np.floor(low), np.ceil(high) + 1)
        between = [1.0, 3.0] if horizontal and len(powers) > 1 else [1.0, 2.0, 5.0]
        return np.sort((whole[:, None] + np.log10(between)).ravel())
    steps = MaxNLocator(4 if horizontal else 5, steps=[1, 2, 2.5, 5, 10])
    ticks = np.asarray(steps.tick_values(10.0**low, 10.0**high))
    return np.log10(ticks[ticks > 0])

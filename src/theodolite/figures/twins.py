"""Two figures of one kind, of one run and of another, on equal axes."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

Limits = tuple[float, float]
# Share of a common axis that either figure fills, and of the smaller that both do.
_ENOUGH = 1 / 3


def match(one: Figure, other: Figure) -> None:
    """Give panels of two figures that show the same the same limits.

    Panels show the same where title and labels of the axes are the same, and are the
    only ones of their figure that have these. Others stay as they are, and so do axes
    on which one of the two would be too small to read, or has another range.

    Args:
        one: A figure, with all that it shows.
        other: Another, for instance of another run.
    """
    ours, theirs = _named(one), _named(other)
    for name, panel in ours.items():
        if panel is not None and (twin := theirs.get(name)) is not None:
            _equal(panel, twin)


def _named(figure: Figure) -> dict[tuple[str, ...], Axes | None]:
    """Return panels by title and labels, None where several have the same."""
    found: dict[tuple[str, ...], Axes | None] = {}
    for panel in figure.axes:
        place = panel.get_subplotspec()
        at = () if place is None else (str(place.rowspan.start),)
        title = panel.get_title(loc="left") or panel.get_title()
        name = (title, panel.get_xlabel(), panel.get_ylabel(), *at)
        found[name] = None if name in found else panel
    return found


def _equal(panel: Axes, twin: Axes) -> None:
    if _scales(panel) != _scales(twin):
        return
    for name in ("x", "y"):
        first, second = (getattr(one, f"get_{name}lim")() for one in (panel, twin))
        low, high = min(*first, *second), max(*first, *second)
        if not _fit(getattr(panel, f"{name}axis"), first, second):
            continue
        ends = (high, low) if first[0] > first[1] else (low, high)
        for one in (panel, twin):
            getattr(one, f"set_{name}lim")(*ends)


def _scales(panel: Axes) -> tuple[str, str]:
    return panel.get_xscale(), panel.get_yscale()


def _fit(axis: Axis, first: Limits, second: Limits) -> bool:
    """Whether two ranges overlap, and each fills enough of both together."""
    one, other = (_on_page(axis, limits) for limits in (first, second))
    whole = max(*one, *other) - min(*one, *other)
    shared = min(max(one), max(other)) - max(min(one), min(other))
    least = min(abs(one[1] - one[0]), abs(other[1] - other[0]))
    return least >= _ENOUGH * whole and shared >= _ENOUGH * least


def _on_page(axis: Axis, limits: Limits) -> Limits:
    """Return limits as an axis draws them, such as their logarithms."""
    low, high = axis.get_transform().transform(np.asarray(limits, float))
    return float(low), float(high)

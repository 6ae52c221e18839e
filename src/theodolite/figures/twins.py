"""Two figures of one kind, of one run and of another, on equal axes."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def match(one: Figure, other: Figure) -> None:
    """Give panels of two figures that show the same the same limits.

    Panels show the same where title and labels of the axes are the same, and are the
    only ones of their figure that have these. Others stay as they are.

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
    if (panel.get_xscale(), panel.get_yscale()) != (
        twin.get_xscale(),
        twin.get_yscale(),
    ):
        return
    for get, put in (("get_xlim", "set_xlim"), ("get_ylim", "set_ylim")):
        first, second = getattr(panel, get)(), getattr(twin, get)()
        turned = first[0] > first[1]
        low, high = min(*first, *second), max(*first, *second)
        for one in (panel, twin):
            getattr(one, put)(*((high, low) if turned else (low, high)))

"""Find marks of a panel that hide others or leave the panel.

All places are in pixels.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from .marks import NEUTRAL, end_mark, is_hollow, meaning
from .style import GRID, SeriesStyle

# Pixels between two visible marks, and the share of a series that another covers.
_APART, _HIDDEN = 2.0, 0.9
# Points by which a marker and a line show on either side of those over them.
_RIM, _EDGE = 3.2, 2.2
_CAPS = ("_", "|")  # ends of error bars


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


def show_hidden(panel: Axes) -> None:
    """Widen hidden series, so that they show as a rim around those above."""
    for one, over in hidden(panel):
        if has_marker(one):
            one.set_markersize(over.get_markersize() + _RIM)
        if is_joined(one):
            one.set_linewidth(over.get_linewidth() + _EDGE)


def hidden(panel: Axes) -> Iterator[tuple[Line2D, Line2D]]:
    """Yield each hidden series with the widest series above it, uppermost first."""
    order = sorted(series_of(panel), key=lambda one: one.get_zorder())
    for place in reversed(range(len(order))):
        above = [one for one in order[place + 1 :] if _covers(one, order[place])]
        if above:  # the widest, which shows around the others by now
            yield order[place], max(above, key=lambda one: one.get_markersize())


def series_of(panel: Axes) -> Iterator[Line2D]:
    """Yield the lines that show data: no rules, frames or ends of error bars."""
    for one in panel.lines:
        if not _visible(one) or one.get_marker() in _CAPS or not len(points_of(one)):
            continue
        if one.get_markevery() == [] and not is_joined(one):
            continue  # all its points are hollow, and in a second line
        plain = colour_of(one) in {*NEUTRAL, GRID.lower()} and not has_marker(one)
        if not plain and one.get_label() != "_decoration":
            yield one


def colour_of(line: Line2D) -> str:
    """Return the colour of a line as ``#rrggbb``."""
    return to_hex(line.get_color()).lower()


def points_of(line: Line2D) -> np.ndarray:
    """Return the finite points of a line, shape (points, 2)."""
    points = line.get_transform().transform(np.asarray(line.get_xydata(), float))
    return points[np.isfinite(points).all(axis=1)]


def has_marker(line: Line2D) -> bool:
    """Return whether a line has markers at its points."""
    return line.get_marker() not in ("None", "none", "", " ", None)


def is_joined(line: Line2D) -> bool:
    """Return whether the points of a line are joined."""
    return line.get_linestyle() not in ("None", "none", "", " ")


def marks_in(panel: Axes, box: Bbox) -> list[Artist]:
    """Return the marks of a panel that reach into a box."""
    lines = [one for one in panel.lines if _visible(one) and _line_in(one, box)]
    others = [
        one
        for one in (*panel.collections, *panel.patches, *panel.images, *panel.texts)
        if _visible(one) and _other_in(one, box)
    ]
    return [*lines, *others]


def _visible(artist: Artist) -> bool:
    return artist.get_visible() and artist.get_alpha() != 0


def _covers(over: Line2D, under: Line2D) -> bool:
    """Return whether one series covers all of another that is not wider."""
    if has_marker(over) != has_marker(under) or is_joined(over) != is_joined(under):
        return False
    if is_hollow(over) or over.is_dashed() or meaning(under) or meaning(over):
        return False
    if has_marker(under) and under.get_markersize() > over.get_markersize() + 1.5:
        return False
    if not has_marker(under) and under.get_linewidth() > over.get_linewidth() + 1.0:
        return False
    below, above = points_of(under), points_of(over)
    gaps = np.abs(below[:, None] - above[None]).max(axis=2).min(axis=1)
    return bool(np.mean(gaps < _APART) >= _HIDDEN)


def _line_in(line: Line2D, box: Bbox) -> bool:
    places = points_of(line)
    if not len(places):
        return False
    reach = line.get_markersize() / 2 * line.figure.dpi / 72 if has_marker(line) else 0  # type: ignore[union-attr]
    wide = box.padded(reach)
    inside = (places >= wide.min).all(axis=1) & (places <= wide.max).all(axis=1)
    if has_marker(line) and inside.any():
        return True
    return is_joined(line) and Path(places).intersects_bbox(box, filled=False)


def _other_in(artist: Artist, box: Bbox) -> bool:
    if isinstance(artist, Collection):
        return any(path.intersects_bbox(box, filled) for path, filled in _paths(artist))
    if hasattr(artist, "get_path"):  # a patch, such as a bar
        path = artist.get_transform().transform_path(artist.get_path())  # type: ignore[attr-defined]
        return path.intersects_bbox(box, filled=True)
    extent = artist.get_window_extent()
    return bool(extent.width and extent.overlaps(box))


def _paths(collection: Collection) -> Iterator[tuple[Path, bool]]:
    """Yield the shapes of a collection, and whether they are filled."""
    if not isinstance(collection, PolyCollection | LineCollection):
        extent = collection.get_window_extent()
        if np.isfinite(extent.get_points()).all() and extent.width:
            yield Path(extent.corners()[[0, 1, 3, 2, 0]]), True
        return
    filled = isinstance(collection, PolyCollection)
    for path in collection.get_paths():
        moved = collection.get_transform().transform_path(path)
        keep = np.isfinite(moved.vertices).all(axis=1)
        yield Path(np.asarray(moved.vertices)[keep]), filled

"""Where a drawn figure has its marks, in pixels."""

from collections.abc import Iterator

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.transforms import Bbox


def covered(panel: Axes, box: Bbox) -> list[Artist]:
    """Return the marks of a panel that reach into a box, given in pixels."""
    lines = [one for one in panel.lines if shown(one) and _line_in(one, box)]
    others = [
        one
        for one in (*panel.collections, *panel.patches, *panel.images, *panel.texts)
        if shown(one) and _other_in(one, box)
    ]
    return [*lines, *others]


def shown(artist: Artist) -> bool:
    """Whether an artist is to be seen at all."""
    return artist.get_visible() and artist.get_alpha() != 0


def points_of(line: Line2D) -> np.ndarray:
    """Return the finite points of a line, in pixels, shape (points, 2)."""
    found = line.get_transform().transform(np.asarray(line.get_xydata(), float))
    return found[np.isfinite(found).all(axis=1)]


def has_marker(line: Line2D) -> bool:
    """Whether a line has markers at its points."""
    return line.get_marker() not in ("None", "none", "", " ", None)


def is_joined(line: Line2D) -> bool:
    """Whether the points of a line are joined."""
    return line.get_linestyle() not in ("None", "none", "", " ")


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
    """Yield the shapes of a collection in pixels, and whether they are filled."""
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

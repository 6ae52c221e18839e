"""Lay figures out and save them as files; equal figures give equal bytes.

Hidden series show as a rim around those above, and no legend covers data. All places
are in pixels.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.transforms import Bbox, ScaledTranslation

from theodolite.core import ConfigError, unknown_name

from .legends import MOVABLE
from .marks import NEUTRAL, is_hollow, meaning
from .style import GRID, house_style

# fontTools logs remarks on the dates of a font, which are left out below.
logging.getLogger("fontTools").setLevel(logging.ERROR)

# Metadata that differs between days or releases is left out.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
# Series with more marks than this become pixels, also in SVG and PDF.
_MANY = 2_000
_DPI = {"png": 200.0}
_PIXELS = 150.0
# Where a legend may stand in its panel, in the order in which places are tried.
_PLACES: dict[Any, tuple[float, float]] = {
    "upper right": (1.0, 1.0),
    "upper left": (0.0, 1.0),
    "upper center": (0.5, 1.0),
    "lower right": (1.0, 0.0),
    "lower left": (0.0, 0.0),
    "lower center": (0.5, 0.0),
    "center right": (1.0, 0.5),
    "center left": (0.0, 0.5),
    "center": (0.5, 0.5),
}
_MARGIN = 0.06  # inches between a legend and what it stands beside
# Pixels between two visible marks, and the share of a series that another covers.
_APART, _HIDDEN = 2.0, 0.9
# Points by which a marker and a line show on either side of those over them.
_RIM, _EDGE = 3.2, 2.2
_CAPS = ("_", "|")  # ends of error bars


def save(
    figure: Figure, stem: str, formats: Sequence[str] = ("svg", "png", "pdf")
) -> dict[str, bytes]:
    """Return the files of a figure; the caller decides where they go.

    Legends that would cover data are moved, and series of very many marks become
    pixels.

    Args:
        figure: Figure from :func:`new_figure`.
        stem: File name without its ending.
        formats: Among ``svg``, ``png`` and ``pdf``.

    Returns:
        File name to content, in the order of ``formats``.

    Example:
        >>> from theodolite.figures import new_figure
        >>> list(save(new_figure()[0], "empty", ["svg"]))
        ['empty.svg']
    """
    if not stem or "/" in stem or "\\" in stem:
        raise ConfigError(
            f"figure name {stem!r} is not a plain file name: try 'condition'"
        )
    for kind in formats:
        if kind not in _METADATA:
            raise unknown_name("figure format", kind, _METADATA)
    with house_style():
        lay_out(figure)
        for panel in figure.axes:
            for artist in (*panel.lines, *panel.collections):
                if _marks(artist) > _MANY:
                    artist.set_rasterized(True)
        with _drawn_once(figure):
            return {f"{stem}.{kind}": _file(figure, kind) for kind in formats}


@contextmanager
def _drawn_once(figure: Any) -> Iterator[None]:
    """Make matplotlib draw each file once; the layout is already done.

    It draws first wherever there is a layout engine, even a placeholder, and no public
    call removes that one.
    """
    engine, figure._layout_engine = figure.get_layout_engine(), None
    try:
        yield
    finally:
        figure._layout_engine = engine


def _file(figure: Figure, kind: str) -> bytes:
    target = BytesIO()
    dpi = _DPI.get(kind, _PIXELS)
    figure.savefig(target, format=kind, dpi=dpi, metadata=_METADATA[kind])
    return target.getvalue()


def _marks(artist: Artist) -> int:
    if isinstance(artist, Line2D):
        return np.size(artist.get_xdata())
    if isinstance(artist, Collection):
        offsets = np.shape(artist.get_offsets())[0]
        return max(offsets, sum(len(path) for path in artist.get_paths()))
    return 0


def lay_out(figure: Figure) -> None:
    """Lay a figure out, show hidden series, and move legends to free places.

    The layout is kept, so that saving in several formats makes it once.
    """
    engine = figure.get_layout_engine()
    if engine is None or isinstance(engine, PlaceHolderLayoutEngine):
        return  # it is laid out
    engine.execute(figure)
    for panel in figure.axes:
        show_hidden(panel)
    # A legend that leaves its panel takes space from others: try those again.
    while any([_place(panel) for panel in figure.axes]):
        engine.execute(figure)
    figure.set_layout_engine("none")


def _place(panel: Axes) -> bool:
    """Put a panel's legend in a free corner; return whether it moved outside."""
    one = panel.get_legend()
    if one is None or one.get_label() != MOVABLE:
        return False
    box = one.get_window_extent()
    letter = one.prop.get_size_in_points() * panel.get_figure(root=True).dpi / 72  # type: ignore[union-attr]
    room = panel.get_window_extent().padded(-one.borderaxespad * letter)
    spare_x, spare_y = room.width - box.width, room.height - box.height
    for name, (across, up) in _PLACES.items():
        if spare_x < 0 or spare_y < 0:
            break
        corner = room.x0 + across * spare_x, room.y0 + up * spare_y
        if not marks_in(panel, Bbox.from_bounds(*corner, box.width, box.height)):
            one.set_loc(name)
            return False
    one.set_label("")
    place = panel.get_subplotspec()
    if place is None or place.is_last_col():
        one.set_bbox_to_anchor((1.01, 1.0), panel.transAxes)
    else:
        _below(panel, one)
    one.set_loc("upper left")
    return True


def _below(panel: Axes, one: Legend) -> None:
    """Hang a legend under its panel's labels."""
    one.set_in_layout(False)
    tight = panel.get_tightbbox()
    one.set_in_layout(True)
    figure = panel.get_figure(root=True)
    bottom = panel.get_window_extent().y0
    drop = (bottom - (tight.y0 if tight else bottom)) / figure.dpi  # type: ignore[union-attr]
    shift = ScaledTranslation(0, -drop - _MARGIN, figure.dpi_scale_trans)  # type: ignore[union-attr]
    one.set_bbox_to_anchor((0.0, 0.0), panel.transAxes + shift)


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

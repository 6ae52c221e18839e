"""Legends that never cover data: in a free corner, below or beside the panels."""

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.legend import Legend
from matplotlib.transforms import Bbox, ScaledTranslation

from .marks import meaning_entries
from .overlap import marks_in, show_hidden
from .style import house_style

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
_MOVABLE = "_movable"
_MARGIN = 0.06  # inches between a legend and what it stands beside
# Inches of an entry without its words, and of a letter, at the size of legends.
_ENTRY, _LETTER = 0.55, 0.075


def legend(
    ax: Axes,
    *,
    title: str | None = None,
    outside: bool = False,
    also: Iterable[Axes] = (),
) -> Legend:
    """Add a frameless legend to a finished panel, in a free place or to its right.

    Marks that mean the same in all series get one entry. A panel without a free place
    gets its legend beside or below it when the figure is saved.

    Args:
        ax: The panel.
        title: Above the entries.
        outside: Always to the right of the panel.
        also: Other panels whose marks this legend explains.
    """
    handles = [*ax.get_legend_handles_labels()[0], *meaning_entries([ax, *also])]
    where: dict[str, Any] = {"loc": "upper right"}
    if outside:
        where = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    with house_style():
        made = ax.legend(handles=handles, title=title, **where)
    if not outside:
        made.set_label(_MOVABLE)
    return made


def shared_legend(
    figure: Figure,
    *,
    title: str | None = None,
    columns: int | None = None,
    order: Sequence[str] = (),
) -> Legend:
    """Add one legend below all panels of a finished figure, with each name once.

    Args:
        figure: The figure.
        title: Above the entries.
        columns: Entries side by side; as many as fit by default.
        order: Names that come first, in this order; the others as they were drawn.
    """
    named = {
        str(handle.get_label()): handle
        for panel in figure.axes
        for handle in panel.get_legend_handles_labels()[0]
    }
    first = [named.pop(name) for name in order if name in named]
    entries = [*first, *named.values(), *meaning_entries(figure.axes)]
    words = [str(one.get_label()) for one in entries]
    with house_style():
        return figure.legend(
            handles=entries,
            title=title,
            loc="outside lower center",
            ncols=columns or _columns(words, figure.get_figwidth()),
        )


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
    if one is None or one.get_label() != _MOVABLE:
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


def _columns(words: Sequence[str], width: float) -> int:
    """Return how many entries fit side by side."""
    longest = max((len(word) for word in words), default=1)
    return max(1, min(len(words), int(width / (_ENTRY + _LETTER * longest))))

"""Legends that never cover data: in a free corner, below or beside the panels."""

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from .marks import meaning_entries
from .style import house_style

# Label of a legend that moves to a free place when its figure is saved.
MOVABLE = "_movable"
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
        made.set_label(MOVABLE)
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


def _columns(words: Sequence[str], width: float) -> int:
    """Return how many entries fit side by side."""
    longest = max((len(word) for word in words), default=1)
    return max(1, min(len(words), int(width / (_ENTRY + _LETTER * longest))))

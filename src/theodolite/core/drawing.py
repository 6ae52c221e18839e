"""The way from what was measured to a figure, taken when one is asked for.

Figures import core, and core imports nothing. So the room that draws is called by its
name, as the libraries of extras are, and matplotlib is imported by whoever plots.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def drawn(how: str, what: Any, **settings: Any) -> "Figure":
    """Return the figure that one of the drawings of ``theodolite.figures`` makes."""
    figures = import_module("theodolite.figures")
    return getattr(figures, how)(what, **settings)

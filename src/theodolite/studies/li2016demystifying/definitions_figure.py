"""Figure 1: where activations stand in a unit."""

import itertools
from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Label, horizontal place and colour of every box from left to right.
_BOXES = (
    (r"$\sigma_{pre}$", 1.2, "orange"),
    (r"$W_1$", 2.4, "blue"),
    (r"$\sigma_{mid}$", 3.6, "orange"),
    (r"$W_2$", 4.8, "blue"),
    (r"$\sigma_{post}$", 6.0, "orange"),
)


def draw(predicted: Rows, measured: Rows) -> "Figure":
    """Draw a unit with its shortcut."""
    figure, (panel,) = figures.new_figure(6.6, 2.2)
    panel.set_axis_off()
    panel.set_xlim(-0.4, 8.6)
    panel.set_ylim(-0.8, 1.6)
    panel.text(0, 0, r"$x$", ha="center", va="center", fontsize=12)
    for label, x, colour in _BOXES:
        panel.text(
            x,
            0,
            label,
            ha="center",
            va="center",
            fontsize=11,
            bbox={
                "boxstyle": "round,pad=0.4",
                "facecolor": "white",
                "edgecolor": figures.PALETTE[colour],
                "linewidth": 1.6,
            },
        )
    panel.text(7.2, 0, r"$+$", ha="center", va="center", fontsize=14)
    panel.text(8.2, 0, r"$x'$", ha="center", va="center", fontsize=12)
    stops = [0.15, *(x for _, x, _ in _BOXES), 7.2, 8.0]
    for left, right in itertools.pairwise(stops):
        start = left if left < 1 else left + (0.42 if left < 7 else 0.15)
        end = right - (0.42 if right < 7 else 0.15)
        _arrow(panel, (start, 0), (end, 0))
    _arrow(panel, (0, 0.2), (7.2, 0.2), bend=-0.28)
    panel.text(3.6, 1.35, "shortcut (identity)", ha="center", fontsize=9)
    for label, x in (("pre", 1.2), ("mid", 3.6), ("post", 6.0)):
        panel.text(x, -0.65, label, ha="center", fontsize=9)
    return figure


def _arrow(
    panel: "Axes", start: tuple[float, float], end: tuple[float, float], bend: float = 0
) -> None:
    panel.annotate(
        "",
        xy=end,
        xytext=start,
        arrowprops={
            "arrowstyle": "-|>",
            "color": "#2B2B2B",
            "linewidth": 1.1,
            "connectionstyle": f"arc3,rad={bend}",
        },
    )

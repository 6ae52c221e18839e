"""The Hessian at zero as a picture, and the unit of figure 1."""

from typing import Any

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows, beside, measured


def picture(both: PredictedAndMeasured) -> Rows:
    """Return predicted and measured entries, and the largest magnitude of all."""
    sides = {"closed form": both.predicted, "measured": both.measured}
    entries = [
        {**row, "road": road}
        for road, rows in sides.items()
        for row in rows.where(quantity="entry")
    ]
    limit = max([abs(row["value"]) for row in entries])
    return Rows([*entries, {"quantity": "limit", "value": limit}])


def unit(both: PredictedAndMeasured) -> Rows:
    """Return the boxes of a unit of a 2-shortcut network, from left to right."""
    boxes = ("pre", "W_1", "mid", "W_2", "post")
    return Rows(
        [
            {
                "quantity": "box",
                "label": f"${label}$" if place % 2 else f"$\\sigma_{{{label}}}$",
                "position": "" if place % 2 else label,
                "value": 1.2 * (place + 1),
            }
            for place, label in enumerate(boxes)
        ]
    )


def _deepest(rows: Rows) -> Rows:
    """Return the rows of the deepest networks, on the first three datasets."""
    first = rows.levels("trial")[:3]
    deepest = rows.where(units=max(rows.levels("units")))
    return Rows([row for row in deepest if row["trial"] in first])


compare = beside(
    (
        "cond(H), n = 2, {setting}, {units} units, dataset {trial}",
        measured("condition").keeping(_deepest),
    )
)


# Entries per weight matrix of the picture's networks, of width 2.
BLOCK = 4


def draw(table: Rows) -> "figures.Figure":
    """Draw closed form (above) and measurement (below) for n = 1, 2, 3."""
    figure, panels = figures.new_figure(7.0, 5.0, panels=(2, 3))
    limit = table.value(quantity="limit")
    places = [(road, n) for road in ("closed form", "measured") for n in (1, 2, 3)]
    images = []
    for panel, (road, n) in zip(panels, places, strict=True):
        images.append(_show(panel, table.where(road=road, shortcut=n), limit))
        panel.set_title(f"n = {n}, {road}")
    bar = figure.colorbar(images[0], ax=panels, shrink=0.6, aspect=30)
    bar.set_label("entry of the Hessian")
    return figure


def _show(panel: "figures.Axes", entries: Rows, limit: float) -> Any:
    side = len(entries.levels("row"))
    matrix = entries.values().reshape(side, side)
    # One pixel per entry, in files of every format.
    image = panel.imshow(
        matrix, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="none"
    )
    for edge in range(0, side + 1, BLOCK):
        panel.axhline(edge - 0.5, color=figures.GRID, linewidth=0.6)
        panel.axvline(edge - 0.5, color=figures.GRID, linewidth=0.6)
    panel.grid(visible=False)
    panel.set_xticks([])
    panel.set_yticks([])
    return image


def draw_unit(table: Rows) -> "figures.Figure":
    """Draw a unit with its shortcut."""
    figure, (panel,) = figures.new_figure(6.6, 2.2)
    panel.set_axis_off()
    panel.set_xlim(-0.4, 8.6)
    panel.set_ylim(-0.8, 1.6)
    for x, text in ((0, "$x$"), (7.2, "$+$"), (8.2, "$x'$")):
        panel.text(x, 0, text, ha="center", va="center", fontsize=12)
    left = 0.15
    for box in table:
        x, position = box["value"], box["position"]
        frame = {
            # Activations, which have a position, are round; matrices are square.
            "boxstyle": "round,pad=0.4" if position else "square,pad=0.4",
            "facecolor": figures.BACKGROUND,
            "edgecolor": figures.TEXT_COLOUR,
            "linewidth": 1.0 if position else 1.8,
        }
        panel.text(
            x, 0, box["label"], ha="center", va="center", fontsize=11, bbox=frame
        )
        panel.text(x, -0.65, position, ha="center", fontsize=9)
        _arrow(panel, (left, 0), (x - 0.42, 0))
        left = x + 0.42
    _arrow(panel, (left, 0), (7.05, 0))
    _arrow(panel, (7.35, 0), (8.0, 0))
    _arrow(panel, (0, 0.2), (7.2, 0.2), bend=-0.28)
    panel.text(3.6, 1.35, "shortcut (identity)", ha="center", fontsize=9)
    return figure


def _arrow(
    panel: "figures.Axes",
    start: tuple[float, float],
    end: tuple[float, float],
    bend: float = 0,
) -> None:
    panel.annotate(
        "",
        xy=end,
        xytext=start,
        arrowprops={
            "arrowstyle": "-|>",
            "color": figures.TEXT_COLOUR,
            "linewidth": 1.1,
            "connectionstyle": f"arc3,rad={bend}",
        },
    )

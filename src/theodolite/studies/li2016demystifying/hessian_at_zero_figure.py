"""The Hessian at zero as a picture, from saved rows."""

from typing import TYPE_CHECKING

import numpy as np

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 2


def draw(predicted: Rows, measured: Rows) -> "Figure":
    """Draw closed form (above) and measurement (below) for n = 1, 2, 3."""
    figure, panels = figures.new_figure(7.0, 5.0, panels=(2, 3))
    roads = (("closed form", predicted), ("measured", measured))
    entries = [rows.where(quantity="entry") for _, rows in roads]
    limit = max(np.abs(rows.values()).max() for rows in entries)
    image = None
    for place, panel in enumerate(panels):
        road, n = divmod(place, 3)
        name, n = roads[road][0], n + 1
        image = _show(panel, _matrix(entries[road], n), limit)
        panel.set_title(f"n = {n}, {name}")
    if image is not None:
        bar = figure.colorbar(image, ax=panels, shrink=0.6, aspect=30)
        bar.set_label("entry of the Hessian")
    return figure


def _matrix(rows: Rows, n: int) -> np.ndarray:
    chosen = rows.where(shortcut=n)
    size = max(chosen.column("row")) + 1
    matrix = np.zeros((size, size))
    matrix[chosen.column("row"), chosen.column("column")] = chosen.values()
    return matrix


def _show(panel, matrix: np.ndarray, limit: float):  # noqa: ANN001, ANN202
    edges = np.arange(len(matrix) + 1)
    image = panel.pcolormesh(
        edges, edges, matrix, cmap="RdBu_r", vmin=-limit, vmax=limit, linewidth=0
    )
    for edge in edges[:: WIDTH**2]:
        panel.axhline(edge, color="0.75", linewidth=0.5)
        panel.axvline(edge, color="0.75", linewidth=0.5)
    panel.set_aspect("equal")
    panel.invert_yaxis()
    panel.grid(visible=False)
    panel.set_xticks([])
    panel.set_yticks([])
    return image

"""What convolutions of norm one make of images of norm one."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(table: Rows) -> "Figure":
    """Draw the norm of the output over the side of the image."""
    figure, (panel,) = figures.new_figure(5.4, 3.2)
    kernels = table.levels("kernel")
    for kernel in kernels:
        rows = table.where(kernel=kernel)
        figures.band(
            panel,
            rows.column("side"),
            rows.values(),
            style=figures.ordered_style(kernel, kernels),
            label=f"{kernel} × {kernel} kernel",
        )
    figures.rule(panel, 1.0)
    panel.set_xlabel("side of the image")
    panel.set_ylabel("norm of the output")
    figures.legend(panel)
    return figure

"""Draw the norms of images of norm one after convolutions of norm one."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows, beside, measured


def table(both: PredictedAndMeasured) -> Rows:
    """Return how far convolutions of norm one stretch images of norm one."""
    return both.measured.where(quantity="stretch")


compare = beside(
    ("Jacobian of batch norm, entry {row}, {column}", measured("jacobian"))
)


def draw(table: Rows) -> "figures.Figure":
    """Draw the norm of the output over the side of the image."""
    figure, (panel,) = figures.new_figure(5.4, 3.2)
    kernels = table.levels("kernel")
    for kernel in kernels:
        rows = table.where(kernel=kernel)
        figures.row_band(
            panel,
            rows,
            "side",
            error=None,
            style=figures.ordered_style(kernel, kernels),
            label=f"{kernel} × {kernel} kernel",
        )
    figures.reference_line(panel, 1.0)
    panel.set(xlabel="side of the image", ylabel="norm of the output")
    figures.legend(panel)
    return figure

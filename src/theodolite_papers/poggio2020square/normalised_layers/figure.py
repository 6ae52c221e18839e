"""Draw the norms of images of norm one after convolutions of norm one."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row


def table(both: PredictedAndMeasured) -> Rows:
    """Return how far convolutions of norm one stretch images of norm one."""
    return both.measured.where(quantity="stretch")


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return the batch norm's Jacobian: closed form beside autodiff."""
    return [
        compared_row(
            f"Jacobian of batch norm, entry {row['row']}, {row['column']}",
            both.predicted.value(
                quantity="jacobian", row=row["row"], column=row["column"]
            ),
            row,
        )
        for row in both.measured.where(quantity="jacobian")
    ]


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

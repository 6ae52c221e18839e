"""Certified constants beside true ones, from rows of points."""

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Rows,
    beside,
    group_means,
    measured,
    predicted,
)

SHOWN = (
    ("looseness", "layers"),
    ("first_term", "scale"),
    ("least_eigenvalue", "scale"),
)


def table(both: PredictedAndMeasured) -> Rows:
    """Return means of decimal logarithms over networks."""
    return Rows.joined(
        group_means(both.measured.where(quantity=quantity), (over,), log=True)
        for quantity, over in SHOWN
    )


compare = beside(
    ("amplitude on |z|^(3/2), rate {rate:g}", measured("amplitude"), predicted("cycle"))
)


KINDS = {"least_eigenvalue": "measured", "first_term": "bound"}
KERNELS = {
    "least_eigenvalue": r"$\lambda(DF)$",
    "first_term": "the first layer's term of Eq 12",
}


def draw(table: Rows) -> "figures.Figure":
    """Draw looseness over layers, and the kernel with its bound over weights."""
    figure, (loose, kernels) = figures.new_figure(7.0, 3.6, panels=(1, 2))
    rows = table.where(quantity="looseness")
    figures.row_band(loose, rows, "layers", error="spread", style="measured")
    figures.reference_line(loose, 0.0)
    loose.set_xlabel("layers")
    figures.power_axis(loose, "y")
    loose.set_ylabel(r"$\beta$ over the largest Hessian")
    for quantity, label in KERNELS.items():
        rows = table.where(quantity=quantity)
        figures.row_band(
            kernels, rows, "scale", error="spread", style=KINDS[quantity], label=label
        )
    figures.log_axis(kernels, "x", ticks=table.levels("scale"))
    figures.power_axis(kernels, "y")
    kernels.set_xlabel("factor on the weights")
    kernels.set_ylabel("least eigenvalue")
    figures.legend(kernels)
    return figure

"""Certified constants beside true ones, from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KERNELS = {
    "least_eigenvalue": r"$\lambda(DF)$",
    "first_term": "the first layer's term of Eq 12",
}


def draw(table: Rows) -> "Figure":
    """Draw looseness over layers, and the kernel with its bound over weights."""
    figure, (loose, kernels) = figures.new_figure(8.6, 3.4, panels=(1, 2))
    rows = table.where(quantity="looseness")
    figures.band(
        loose,
        rows.column("layers"),
        rows.values(),
        rows.values("spread"),
        style=figures.series_style("looseness", ["looseness"]),
    )
    figures.rule(loose, 0.0)
    loose.set_xlabel("layers")
    loose.set_ylabel(r"$\log_{10}$ of $\beta$ over the largest Hessian")
    for quantity, label in KERNELS.items():
        rows = table.where(quantity=quantity)
        figures.band(
            kernels,
            rows.column("scale"),
            rows.values(),
            rows.values("spread"),
            style=figures.series_style(quantity, list(KERNELS)),
            label=label,
        )
    kernels.set_xscale("log")
    kernels.set_xlabel("factor on the weights")
    kernels.set_ylabel(r"$\log_{10}$ of the least eigenvalue")
    figures.legend(kernels)
    return figure

"""Certified constants beside true ones, from rows of points."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, group_means

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


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Cycles of descent on a cost without Lipschitz gradient."""
    return [
        {
            "label": f"amplitude on |z|^(3/2), rate {row['rate']:g}",
            "predicted": both.predicted.value(quantity="cycle", rate=row["rate"]),
            "measured": row["value"],
            "error": row["error"],
        }
        for row in both.measured.where(quantity="amplitude")
    ]


if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {"least_eigenvalue": "measured", "first_term": "bound"}
KERNELS = {
    "least_eigenvalue": r"$\lambda(DF)$",
    "first_term": "the first layer's term of Eq 12",
}


def draw(table: Rows) -> "Figure":
    """Draw looseness over layers, and the kernel with its bound over weights."""
    figure, (loose, kernels) = figures.new_figure(7.0, 3.6, panels=(1, 2))
    rows = table.where(quantity="looseness")
    figures.band(
        loose,
        rows.column("layers"),
        rows.values(),
        rows.values("spread"),
        style=figures.kind_style("measured"),
    )
    figures.reference_line(loose, 0.0)
    loose.set_xlabel("layers")
    figures.power_axis(loose, "y")
    loose.set_ylabel(r"$\beta$ over the largest Hessian")
    for quantity, label in KERNELS.items():
        rows = table.where(quantity=quantity)
        figures.band(
            kernels,
            rows.column("scale"),
            rows.values(),
            rows.values("spread"),
            style=figures.kind_style(KINDS[quantity]),
            label=label,
        )
    figures.log_axis(kernels, "x", ticks=table.levels("scale"))
    figures.power_axis(kernels, "y")
    kernels.set_xlabel("factor on the weights")
    kernels.set_ylabel("least eigenvalue")
    figures.legend(kernels)
    return figure

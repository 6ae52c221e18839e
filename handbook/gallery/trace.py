r"""The sum of all eigenvalues, from a few products.

## What it means

The trace is the mean curvature times the number of weights. It adds up over layers,
so that it says which of them are stiff.

## How it is computed

By Hutch++: a sketch takes the part of the matrix that stands out, exactly; the trace
of what is left is estimated by $v^\top H v$ over random directions. Their variance is
not read off the spread of a few numbers: the products $Hv$ themselves measure it, so
that the interval holds for few of them too.

## When it lies

- Positive and negative curvature cancel. A small trace does not mean a flat
  landscape.
- A trace of a *layer* leaves out what couples layers; only the sum is exact.
- Of a ReLU network's loss it leaves out the kinks, as the Hessian does.
"""

from matplotlib.figure import Figure

from handbook.subjects import LOSS, digits, trained
from theodolite import instruments


def draw() -> Figure:
    """Show how the estimate closes in on the exact trace."""
    given = {"loss": LOSS, "norm_mode": "batch"}
    exact = instruments.trace(trained(), digits(), method="dense", **given)
    budgets = (12, 24, 48)
    readings = [
        instruments.trace(
            trained(), digits(), method="products", max_matvecs=budget, **given
        )
        for budget in budgets
    ]
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    low = [each.trace - each.trace_low for each in readings]
    high = [each.trace_high - each.trace for each in readings]
    axes.errorbar(
        budgets,
        [each.trace for each in readings],
        yerr=(low, high),
        fmt="o",
        label="estimate, 95 %",
    )
    axes.axhline(exact.trace, color="grey", label="exact")
    axes.set(xlabel="products", ylabel="trace", xscale="log")
    axes.set_xticks(budgets, [str(budget) for budget in budgets])
    axes.minorticks_off()
    axes.legend()
    return figure

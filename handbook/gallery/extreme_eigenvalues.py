r"""The largest and smallest eigenvalues of the Hessian, from products alone.

## What it means

The largest eigenvalue, the *sharpness*, sets the pace: gradient descent with rate
$\eta$ is stable along its direction while $\eta < 2/\lambda_{\max}$. The smallest
tells a saddle from a minimum.

## How it is computed

By Lanczos on Hessian-vector products, a backward pass through the gradient's graph
each, orthogonalised in full. Each value comes with its residual $\lVert Hv - \lambda
v\rVert$, with an error that bounds the distance to *some* eigenvalue, and with a
status: it converged, or the budget of products was spent. Networks of up to 1000
parameters are solved densely, which `method` says.

## When it lies

- A start without a part along the leading eigenvector never finds it. Random starts
  make that unlikely; `repeated=True` finds eigenvalues that occur several times.
- `ends="magnitude"` returns the largest in size, which may be the most negative.
- In norm mode `"batch"` the value belongs to batches of that size: another partition
  of the same data has another Hessian.
"""

from matplotlib.figure import Figure

from handbook.subjects import LOSS, digits, trained
from theodolite import instruments


def draw() -> Figure:
    """Show twelve eigenvalues at each end, with their errors."""
    reading = instruments.extreme_eigenvalues(
        trained(), digits(), loss=LOSS, norm_mode="batch", k=12, method="products"
    )
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    ranks = range(1, 13)
    axes.errorbar(
        ranks, reading.eigenvalues, yerr=reading.errors, fmt="o", label="largest"
    )
    axes.errorbar(
        ranks, reading.smallest, yerr=reading.smallest_errors, fmt="v", label="smallest"
    )
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set(xlabel="rank from its end", ylabel="eigenvalue")
    axes.set_yscale("symlog", linthresh=0.01)
    axes.legend(loc="center right")
    return figure

r"""The condition number of the Hessian, read at a percentile.

## What it means

The ratio of the largest $|\lambda|$ to that at a quantile says how much slower
descent is along a typical direction than along the steepest. The smallest of all is
zero for most networks, so that a quantile, here 0.5, is what can be compared.

## How it is computed

From all eigenvalues, or for larger networks from the extremes and a quadrature rule
of $|\lambda|$; the interval joins both. Below the rounding of the graph the ratio is
not resolved, the status says `rounding`, and its error is infinite.

## When it lies

- Weights without influence make the quantile a statement of how many there are.
- It changes when weights are rescaled, which leaves a network with norms as it was.
- Two networks are comparable at the same quantile and norm mode only.
"""

from matplotlib.figure import Figure

from handbook.subjects import LOSS, digits, network
from theodolite import instruments


def draw() -> Figure:
    """Set quantiles side by side, for three depths."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    quantiles = (0.3, 0.5, 0.7, 0.9)
    for depth in (1, 2, 4):
        matrix = instruments.spectrum(
            network(depth), digits(), loss=LOSS, norm_mode="batch"
        )
        readings = [matrix.condition(quantile=quantile) for quantile in quantiles]
        axes.plot(
            quantiles, [each.ratio for each in readings], "o-", label=f"{depth} blocks"
        )
    axes.set(
        xlabel="quantile", ylabel="largest over that at the quantile", yscale="log"
    )
    axes.legend()
    return figure

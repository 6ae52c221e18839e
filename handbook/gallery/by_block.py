r"""Any instrument of the Hessian, block by block.

## What it means

The Hessian of one layer, all others held, says where in the network curvature sits:
which layer limits the rate, which hardly moves the loss.

## How it is computed

`by_block` gives an instrument the parameters of one layer at a time, or of any groups
that are named, and stacks the readings. Data are read once for all; each block keeps
its own error, status and cost.

## When it lies

- Blocks on the diagonal leave out what couples layers: the largest eigenvalue of the
  whole is at least the largest of the blocks, and often well above.
- Layers of different size are compared by eigenvalues fairly, by traces not: divide
  by the number of weights.
"""

from matplotlib.figure import Figure

from handbook.subjects import LOSS, digits, trained
from theodolite import instruments


def draw() -> Figure:
    """Show the largest eigenvalue of each layer beside that of the whole."""
    given = {"loss": LOSS, "norm_mode": "batch"}
    blocks = instruments.by_block(
        instruments.extreme_eigenvalues, trained(), digits(), **given
    )
    whole = instruments.extreme_eigenvalues(trained(), digits(), **given)
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    values = [reading.eigenvalues[0] for reading in blocks.readings]
    errors = [reading.errors[0] for reading in blocks.readings]
    axes.bar(list(blocks.blocks), values, yerr=errors)
    axes.axhline(whole.eigenvalues[0], color="grey", linestyle="--", label="whole")
    axes.set(ylabel="largest eigenvalue", ylim=(0, 1.15 * whole.eigenvalues[0]))
    axes.tick_params(axis="x", rotation=45)
    axes.legend()
    return figure

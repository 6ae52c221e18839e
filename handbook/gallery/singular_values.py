r"""Singular values of the Jacobian of a block: how it stretches its inputs.

## What it means

A block that keeps all singular values near 1 passes signals and gradients unharmed; a
product of many that do not vanishes or explodes. A skip adds the identity, which
lifts small singular values.

## How it is computed

Densely where the Jacobian of all samples fits; else a sample at a time where samples
do not mix; else by Golub–Kahan quadrature with an error band for the distribution. In
norm mode `"batch"` samples mix, and the Jacobian is that of the whole batch.

## When it lies

- It is the map from **all** inputs of the batch to all outputs. With batch norms its
  couplings are small and many; `coupling_rank` says how many there can be.
- Products of blocks do not have products of singular values: ask for a span `(first,
  last)` instead of multiplying.
- `rank` counts above a tolerance. Its bounds are part of the reading.
"""

from matplotlib.figure import Figure

from handbook.subjects import digits, trained
from theodolite import instruments


def draw() -> Figure:
    """Draw the singular values of each block of a trained network."""
    x, _ = digits(40)
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for block in ("1", "2", "3", "4"):
        reading = instruments.singular_values(
            trained(), x, block=block, norm_mode="batch"
        )
        axes.plot(reading.values, label=f"block {block}")
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set(xlabel="rank", ylabel="singular value", yscale="log")
    axes.legend()
    return figure

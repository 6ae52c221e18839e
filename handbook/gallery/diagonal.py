r"""The diagonal of the Hessian: the curvature along each weight.

## What it means

Entry $H_{ii}$ is how fast the slope along weight $i$ changes as it moves alone. It is
what diagonal preconditioners try to know, and what pruning by saliency $\tfrac12
H_{ii}\theta_i^2$ rests on.

## How it is computed

Exactly for small networks; else by a sketch and random signs, as for the trace, entry
by entry: $\mathbb{E}[v \odot Hv]$ over signs $v$ is the diagonal. Each entry has an
error, and `factor` makes an interval of it.

## When it lies

- It says nothing of directions that mix weights, in which networks curve most.
- Entries whose size is below `diagonal_error` may have the other sign.
- Weights before a batch norm are free to scale: their diagonal changes with their
  norm, the network does not.
"""

import numpy as np
from matplotlib.figure import Figure

from handbook.subjects import LOSS, digits, trained
from theodolite import instruments


def draw() -> Figure:
    """Show the curvature of each weight of the head, as a picture."""
    reading = instruments.diagonal(
        trained(), digits(), loss=LOSS, norm_mode="batch", params=["5.weight"]
    )
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(np.reshape(reading.diagonal, (10, 8)), cmap="viridis")
    axes.set(xlabel="feature", ylabel="class")
    figure.colorbar(image, label="curvature along the weight")
    return figure

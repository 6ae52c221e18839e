r"""The whole matrix of second derivatives of the loss, as an array.

## What it means

Entry $H_{ij} = \partial^2 L / \partial\theta_i \partial\theta_j$ says how the slope
along one weight changes when another moves. Blocks of layers show as squares; a
bright square off the diagonal couples two layers.

## How it is computed

By differentiating twice, a chunk of rows at a time, in one graph: no formula of the
layers is assumed, and none is approximated. The matrix comes with its asymmetry,
which would be zero in exact arithmetic, with a bound on the error of each entry, and
with loss and gradient at the same point. All of it costs as many backward passes as
there are parameters, so that it serves networks of some ten thousand weights;
`matrix_bytes` refuses what would not fit.

## When it lies

- **ReLU networks** have a Hessian only off their kinks. What is returned is that of
  the linear piece at hand; curvature that sits in the kinks is not in it.
- **Batch norm** makes several functions of one network: say which by `norm_mode`. In
  `"eval"` the matrix is not that of the objective that training sees.
- **float32** loses what is below the rounding of the graph; `matrix_error` says how
  much.
"""

import numpy as np
from matplotlib.figure import Figure

from handbook.subjects import LOSS, digits, trained
from theodolite import instruments


def draw() -> Figure:
    """Show the blocks and the head of a trained network, layer by layer."""
    model = trained()
    names = [f"{i}.linear.weight" for i in (1, 2)] + ["5.weight"]
    reading = instruments.hessian(
        model, digits(), loss=LOSS, norm_mode="batch", params=names
    )
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes = figure.subplots()
    size = np.log10(np.abs(reading.matrix) + 1e-12)
    image = axes.imshow(size, cmap="magma", vmin=-6)
    edges = np.cumsum([0, *(np.prod(shape) for _, shape in reading.layout)])
    axes.set_xticks((edges[1:] + edges[:-1]) / 2, names)
    axes.set_yticks((edges[1:] + edges[:-1]) / 2, names, rotation=90, va="center")
    figure.colorbar(image, label="log₁₀ of the entry's size")
    return figure

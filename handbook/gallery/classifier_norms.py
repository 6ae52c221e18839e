r"""Norms of layers, their product, and margins in units of it.

## What it means

A network that is homogeneous in each layer's weights is a scale times a direction: $f
= \rho\, f_V$, $\rho$ the product of the layers' norms. Bounds on test error speak of
the *normalised* margin $y f_V$, since $\rho$ changes no decision.

## How it is computed

Norms come from the weights, batch norms folded into the layers they follow; that the
network is homogeneous is checked by scaling each layer and running it. Margins come
from one pass. Errors are those of rounding.

## When it lies

- Biases and layers that nothing normalises are not scaled away: `notes` and
  `left_out` name them, `invariance` and `scaled_off` say how far off homogeneity is.
- The least margin is one sample's. A single wrong label sets it.
- Between networks of different depth $\rho$ does not compare.
"""

import numpy as np
from matplotlib.figure import Figure

from handbook.subjects import digits, trained
from theodolite import instruments


def draw() -> Figure:
    """Draw the norm of each layer and all margins."""
    reading = instruments.classifier_norms(trained(), digits(), norm_mode="eval")
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.barh(list(reading.names), reading.layer_norms)
    left.set(xlabel="norm of the layer")
    left.invert_yaxis()
    margins = np.sort(reading.margins)
    right.plot(margins, np.linspace(0, 1, len(margins)))
    right.axvline(0, color="grey", linewidth=0.8)
    right.set(xlabel="margin", ylabel="share of samples below")
    return figure

r"""How eigenvalues of the Hessian are spread, with a band that holds at all points.

## What it means

The density tells in one look how much of the network is flat, how far the bulk
reaches and what lies outside of it, for networks whose matrix nobody could store.

## How it is computed

By stochastic Lanczos quadrature: random probes $v$, some steps of Lanczos from each,
and a Gauss rule of the tridiagonal matrix. Nodes are smoothed by a kernel of stated
width. The band holds simultaneously over the grid at the stated level: it covers
chance among the probes by Student's law and what the rule cannot resolve by bounds
between nodes.

## When it lies

- **Single outliers** carry a share $1/n$ each; a density shows them as bumps of the
  kernel's width. Ask `extreme_eigenvalues` for them.
- Peaks narrower than `width` are smeared, and mass at exactly zero looks like a hill.
- Few steps hide structure within the bulk without widening it: raise `steps`, not
  `n_probes`, when the curve changes with them.
"""

import numpy as np
from matplotlib.figure import Figure

from handbook.subjects import LOSS, digits, trained
from theodolite import instruments


def draw() -> Figure:
    """Draw the density of a trained network with its band."""
    reading = instruments.spectral_density(
        trained(), digits(), loss=LOSS, norm_mode="batch", steps=48, method="products"
    )
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    floor = 1e-6
    band = np.maximum((reading.density_low, reading.density_high), floor)
    axes.fill_between(reading.grid, *band, alpha=0.3, label="95 % band")
    axes.plot(reading.grid, np.maximum(reading.density, floor), label="density")
    axes.set(xlabel="eigenvalue", ylabel="density", yscale="log")
    axes.legend()
    return figure

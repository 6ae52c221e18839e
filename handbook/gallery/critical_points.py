r"""All critical points of an energy on a sphere, found and counted by index.

## What it means

Spin-glass models of networks predict how many minima and saddles a loss has at each
height. On small spheres all of them can be found, so that predictions meet counts.

## How it is computed

Newton's method runs on the sphere from random starts, in rounds that double. The
search ends when nothing speaks for a missing point: the alternating sum over indices
is the Euler characteristic of the sphere, every point was met twice or more, and none
has a singular Hessian.

## When it lies

- Points with tiny basins are hit rarely, and the Euler sum does not see two that are
  missing together, such as a saddle and its neighbour. A point with a basin as large
  as those found is missing with a chance of about one in the number of starts.
- Points of singular Hessian are told apart badly; the status then says so.
- Counts grow exponentially with the dimension: five is many.
"""

import torch
from matplotlib.figure import Figure
from torch import Tensor

from theodolite import instruments

N = 4
COUPLINGS = torch.randn(
    N, N, N, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
)


def energy(points: Tensor) -> Tensor:
    """Return a random cubic form of points on the sphere."""
    return torch.einsum("ijk,...i,...j,...k->...", COUPLINGS, points, points, points)


def draw() -> Figure:
    """Draw every critical point at its energy, by index."""
    reading = instruments.critical_points(energy, dimension=N, radius=1.0)
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for index in range(N):
        chosen = reading.indices == index
        axes.plot(reading.energies[chosen], [index] * int(chosen.sum()), "o")
    axes.set_yticks(range(N))
    axes.set(xlabel="energy", ylabel="index", ylim=(-0.6, N - 0.4))
    sums = f"alternating sum {reading.euler}, wanted {reading.characteristic}"
    axes.set_title(f"{reading.total} points, {sums}", fontsize=10)
    return figure

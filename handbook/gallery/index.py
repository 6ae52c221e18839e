r"""The share of negative eigenvalues.

## What it means

At a minimum the index is zero; at a saddle it counts the ways down. Along training it
falls, and how it falls with the loss is what theories of the loss landscape predict.

## How it is computed

By counting, where the matrix fits; else by quadrature, as for the density, with an
interval for the share below $-\varepsilon$. Eigenvalues within $\varepsilon$ of zero,
the rounding of the graph, are counted apart as `near_zero`: nobody can tell their
sign.

## When it lies

- Degenerate directions, such as the scales before a batch norm, are exact zeros;
  which side rounding puts them on is chance, and `near_zero` must be read with the
  index.
- A short Lanczos rule cannot place mass close to zero, and the interval is then wide:
  it is not wrong, it is an answer.
"""

import torch
from matplotlib.figure import Figure

from handbook.subjects import LOSS, digits, network
from theodolite import instruments


def draw() -> Figure:
    """Follow the index of two blocks and the head along their training."""
    model, (x, y) = network(2), digits()
    names = [name for name, _ in model.named_parameters() if not name.startswith("0")]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    steps, readings = [], []
    for step in range(41):
        if step % 10 == 0:
            steps.append(step)
            reading = instruments.index(
                model,
                (x, y),
                loss=LOSS,
                norm_mode="batch",
                params=names,
                method="dense",
            )
            readings.append(reading)
        optimizer.zero_grad()
        LOSS(model(x), y).backward()
        optimizer.step()
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    low = [each.index - each.index_low for each in readings]
    high = [each.index_high - each.index for each in readings]
    axes.errorbar(steps, [each.index for each in readings], yerr=(low, high), fmt="o-")
    axes.set(xlabel="step", ylabel="share of negative eigenvalues", ylim=(0, None))
    return figure

r"""The largest step along a line for which the loss is certain to fall.

## What it means

Each step of the negative gradient, or of a given direction, up to this one lowers the
loss of the batch, with a proof in place of a measurement. Beside it is
$2/\lambda_{max}$, at which a parabola of the measured sharpness would begin to diverge.

## How it is computed

The model runs at points of the segment. Between two of them the loss is its chord plus
what each operator bends, weighted by derivatives of the loss. Bends are bounded from
the activations that the data has there.

## When it lies

- It holds for one batch, and for the loss in exact arithmetic.
- It is far below $2/\lambda_{max}$ in deep networks with norms, where bounds grow from
  layer to layer: `layer_looseness` says where. More `evaluations` give a longer step.
- Directly before the kink of a rectifier the step may end there.
"""

import torch
from matplotlib.figure import Figure
from torch import nn

from theodolite import certificates
from theodolite.instruments import Problem


def draw() -> Figure:
    """Set the guaranteed step of networks of ReLU beside 2/λmax."""
    depths = (1, 2, 4, 8)
    steps, stable = [], []
    for depth in depths:
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(depth)]
        batch = torch.randn(32, 8), torch.arange(32) % 3
        model = nn.Sequential(*layers, nn.Linear(8, 3))
        guarantee = certificates.guaranteed_step(
            Problem(model, batch, loss=nn.CrossEntropyLoss())
        )
        steps.append(guarantee.step)
        stable.append(guarantee.stable_step)
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(depths, stable, "o-", label="2 / λmax, measured")
    axes.plot(depths, steps, "s-", label="guaranteed")
    axes.set(xlabel="hidden layers", ylabel="step", yscale="log")
    axes.set_xticks(depths)
    axes.legend()
    return figure

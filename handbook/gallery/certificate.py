r"""What theory guarantees of a network's training, from its layers alone.

## What it means

A bound on the smoothness of the loss gives a step that cannot diverge; a lower bound
on the tangent kernel gives a rate at which the loss must fall. Where a hypothesis is
not met the certificate says which, and promises nothing.

## How it is computed

Layers are recognised by type; each has constants of its own, which the chain rule
joins to bounds on first and second derivatives of the whole. Kernel and gradient at
the given weights are measured and set beside the bounds.

## When it lies

- Bounds hold and are loose, by factors that grow with depth: the guaranteed step is
  far below the one that works.
- Weights that no norm bounds are unbounded, and so is the smoothness: it is finite
  within a `radius` of these weights only, and a step that leaves it is not covered.
- Layers that it does not know are refused by name: nothing is assumed of them.
"""

import torch
from matplotlib.figure import Figure
from torch import nn

from theodolite import certificates
from theodolite.instruments import HalfSquareLoss, extreme_eigenvalues


def draw() -> Figure:
    """Set the guaranteed step beside the one that curvature would allow."""
    steps, allowed = [], []
    depths = (1, 2, 3, 4)
    for depth in depths:
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(depth)]
        model = nn.Sequential(*[part for layer in layers for part in layer]).double()
        data = torch.randn(3, 4).double(), torch.randn(3, 4).double()
        promised = certificates.certificate(model, data, HalfSquareLoss(), radius=1.0)
        steps.append(float(promised.step))
        sharp = extreme_eigenvalues(
            model, data, loss=HalfSquareLoss(), norm_mode="eval", ends="largest"
        )
        allowed.append(2 / sharp.eigenvalues[0])
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(depths, allowed, "o-", label="2 / λmax, measured here")
    axes.plot(depths, steps, "s-", label="guaranteed within the radius")
    axes.set(xlabel="layers", ylabel="step", yscale="log")
    axes.set_xticks(depths)
    axes.legend()
    return figure

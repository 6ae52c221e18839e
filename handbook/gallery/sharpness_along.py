r"""Sharpness along training, each step starting from where the last one ended.

## What it means

Full-batch gradient descent with rate $\eta$ drives the largest eigenvalue up to
$2/\eta$ and holds it there, the *edge of stability*. Where it is far below, a larger
rate is free; where it is above, the loss is about to jump.

## How it is computed

By Lanczos as in `extreme_eigenvalues`, started from the eigenvector of the step
before, which has hardly turned: a few products a step instead of dozens. A
probability bound says that a larger eigenvalue was missed with chance at most
`chance`.

## When it lies

- Of a **mini-batch** it is the sharpness of that batch, which is larger than the
  data's.
- With **momentum** the edge is at $2(1+\mu)/\eta$, with Adam it is that of the
  preconditioned matrix: the number itself then compares with nothing.
- Between probes it may have jumped and come back: `every=1` sees all.
"""

import torch
from matplotlib.figure import Figure
from torch import nn

from handbook.subjects import digits
from theodolite import instruments

RATE = 0.7


def draw() -> Figure:
    """Follow the sharpness of full-batch descent up to its edge."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10)).double()
    x, y = digits(100)
    x, y = x - x.mean(0), nn.functional.one_hot(y, 10).double()
    loss = instruments.HalfSquareLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    probe = instruments.sharpness_along(
        model, (x, y), loss=loss, norm_mode="eval", every=20
    )
    for step in range(601):
        probe(step)
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    reading = probe.reading()
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(reading.steps, reading.eigenvalues[:, 0], "o-", label="sharpness")
    axes.axhline(2 / RATE, color="grey", linestyle="--", label="2 / rate")
    axes.set(xlabel="step", ylabel="largest eigenvalue")
    axes.legend()
    return figure

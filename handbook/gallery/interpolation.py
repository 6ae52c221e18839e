r"""When training reached zero error, and whether it stayed there.

## What it means

The *terminal phase* begins with the first step without a wrong sample. Much of what
theory says of margins and collapse is about that phase only.

## How it is computed

From margins of all samples at the steps at which somebody looked: the first step
without an error, the one from which there is none any more, relapses in between, the
share of steps from then on that were without one. A step is known up to the one
looked at before: that is its error. `InterpolationMeter` collects in a loop.

## When it lies

- Looked at every hundred steps, a relapse of ten goes unseen.
- Training that ends soon after the first zero may relapse yet: see how many steps
  were looked at since.
- Zero error on augmented images is another thing than on plain ones.
"""

import torch
from matplotlib.figure import Figure

from handbook.subjects import LOSS, digits, network
from theodolite import instruments


def draw() -> Figure:
    """Train until all digits are right, and mark since when they stayed so."""
    model, (x, y) = network(), digits(100)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
    margins = {}
    for step in range(61):
        outputs = model(x)
        if step % 2 == 0:
            rows = torch.arange(len(y))
            rivals = outputs.detach().clone()
            rivals[rows, y] = -torch.inf
            margins[step] = outputs.detach()[rows, y] - rivals.amax(1)
        optimizer.zero_grad()
        LOSS(outputs, y).backward()
        optimizer.step()
    reading = instruments.interpolation(margins)
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(reading.steps, reading.error_rate, label="error rate")
    axes.axvspan(reading.settled_from, 60, alpha=0.2, label="no error any more")
    axes.set(xlabel="step", ylabel="share of wrong digits")
    axes.legend()
    return figure

r"""Every single path of a residual network, for networks of few blocks.

## What it means

Where `path_ensemble` groups paths by length, `unravel` shows each: which combination
of blocks carries the output. With $b$ branches there are $2^b$ of them.

## How it is computed

Branches are switched on and off in all combinations with gates held, and inclusion
and exclusion gives each path. The sum over all is compared with the output.

## When it lies

- As for `path_ensemble`, gates are those of the whole network.
- Contributions below the rounding of the output are lost; `path_ensemble` keeps them.
- Paths interfere: two of high energy may cancel. `alignment` tells.
- Ten branches are the end: the number of paths doubles with each.
"""

import numpy as np
from matplotlib.figure import Figure

from handbook.subjects import digits, trained
from theodolite import paths


def draw() -> Figure:
    """Draw the energy of all sixteen paths, the strongest first."""
    x, _ = digits(64)
    reading = paths.unravel(trained(), x, norm_mode="eval")
    order = np.argsort(reading.energy)[::-1]
    names = [str(reading.paths[i]) for i in order]
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.barh(names, reading.energy[order])
    axes.invert_yaxis()
    axes.set(xlabel="energy", ylabel="branches taken")
    return figure

r"""A residual network as a sum over paths, weighted by their length.

## What it means

Each block doubles the ways through a network: by the skip or by the branch. Together
they are an ensemble of paths of every length. The energies say which lengths matter,
and their mean is the *effective depth*, often far below the number of layers.

## How it is computed

Every branch is multiplied by $t$, with gates, choices of max-pools and statistics of
norms held at the forward pass that really was: the output is then a polynomial in $t$
whose coefficient of $t^r$ is the sum over all paths with $r$ branches. Coefficients
are carried through the network directly and are exact to rounding; that they add up
to the output is checked (`residual`).

## When it lies

- Gates of ReLUs are held at what the whole network sets them to. A path alone would
  set others: ask `lesion` how far that matters.
- Energies are of sums that interfere; shares may add up to more than one, and
  `alignment` says how they do.
- Statistics of norms are held in all norm modes: what a path does to them is left
  out.
"""

from matplotlib.figure import Figure

from handbook.subjects import digits, network, trained
from theodolite import paths


def draw() -> Figure:
    """Set shares of lengths at the start beside those after training."""
    x, _ = digits(64)
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for shift, (name, model) in enumerate(
        (("at the start", network()), ("after 60 steps", trained()))
    ):
        reading = paths.path_ensemble(model, x, norm_mode="eval")
        share = reading.share[0]  # of the output
        places = [length + 0.4 * shift - 0.2 for length in range(len(share))]
        depth = f"{name}, effective depth {reading.effective_depth[0]:.2f}"
        axes.bar(places, share, width=0.4, label=depth)
    axes.set(xlabel="branches on the path", ylabel="share of the energy")
    axes.legend()
    return figure

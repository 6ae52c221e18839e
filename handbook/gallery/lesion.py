r"""What a network loses when blocks are deleted or change places.

## What it means

If paths act independently, deleting a block removes half of them and the output
changes a little; if blocks lean on one another, it breaks. The change *with gates
held* is what the sum over paths predicts, the *true* change is what happens.

## How it is computed

The network is run with branches that add nothing, or that have swapped their weights,
and its outputs are compared; once more with gates and statistics of the whole
network. Both changes are relative to the output, and `alignment` is the cosine
between them.

## When it lies

- In norm mode `"batch"` norms adapt to the lesion and hide it; `"eval"` does not.
- A change of outputs is not a change of decisions.
"""

from matplotlib.figure import Figure

from handbook.subjects import digits, trained
from theodolite import paths


def draw() -> Figure:
    """Delete each block in turn."""
    x, _ = digits(64)
    reading = paths.lesion(trained(), x, norm_mode="eval")
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    places = range(len(reading.true_change))
    axes.bar([p - 0.2 for p in places], reading.true_change, 0.4, label="true")
    axes.bar([p + 0.2 for p in places], reading.frozen_change, 0.4, label="gates held")
    axes.set_xticks(list(places), [str(each) for each in reading.lesions])
    axes.set(xlabel="deleted", ylabel="relative change of the outputs")
    axes.legend()
    return figure

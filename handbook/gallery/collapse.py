r"""Neural collapse: do features of a class become one point, and classes a simplex?

## What it means

At the end of training, features of a class draw together (NC1), class means spread to
a simplex (NC2), the head aligns with them (NC3) and decides by the nearest mean
(NC4). Each property is a number that is zero when it holds.

## How it is computed

From one pass of the data through the named layer, or the one before the head: class
means and scatter add up over batches, so that data of any size will do, and
`CollapseMeter` adds up over processes. Errors are standard errors over samples.

## When it lies

- Measured on the **training** data it says nothing of test data: measure both.
- NC1 by variability divides by the scatter of means: with few classes in many
  dimensions it falls by chance. `nc1_cdnv` does not.
- With classes of different size "equinorm" is not to be expected.
"""

from matplotlib.figure import Figure

from handbook.subjects import digits, trained
from theodolite import instruments


def draw() -> Figure:
    """Draw four of the numbers, and class means on the plane of a simplex."""
    x, y = digits()
    reading = instruments.collapse(trained(), (x, y), norm_mode="eval")
    names = ("nc1_cdnv", "nc2_mean_norms", "nc2_mean_angles", "nc3_duality")
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1.6))
    left.barh(names, [float(getattr(reading, name)) for name in names])
    left.set(xlabel="0 when collapsed")
    for place, name in zip(reading.plane, reading.classes, strict=True):
        right.text(*place, str(name), ha="center", va="center")
    right.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal", title="class means")
    return figure

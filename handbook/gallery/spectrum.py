r"""All eigenvalues of the loss Hessian.

## What it means

An eigenvalue is the curvature along its direction: large and positive is a steep
wall, near zero a flat floor, negative a way down that the gradient may not see.
Trained classifiers have a bulk near zero and about as many outliers as classes.

## How it is computed

By the dense Hessian and a symmetric eigensolver in float64; the error of the
eigenvalues bounds rounding, of the solver as of the graph, by Weyl's inequality. With
`operator=GaussNewton`, `Fisher` or `EmpiricalFisher` it is the spectrum of those.

## When it lies

- Below `eigenvalue_error` signs mean nothing: count them with `index`, which knows.
- The Gauss–Newton matrix is never indefinite, so that its spectrum cannot show a
  saddle.
- A mean over a batch is not a mean over the data: the outliers of 200 samples are
  larger than those of 50,000.
"""

from matplotlib.figure import Figure

from handbook.subjects import LOSS, digits, network, trained
from theodolite import instruments


def draw() -> Figure:
    """Set the spectrum at the start beside that after training."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, model in (("at the start", network()), ("after 60 steps", trained())):
        reading = instruments.spectrum(model, digits(), loss=LOSS, norm_mode="batch")
        axes.plot(reading.eigenvalues, label=name)
    axes.set(xlabel="rank", ylabel="eigenvalue", yscale="symlog", xscale="log")
    axes.set_yscale("symlog", linthresh=1e-4)
    axes.legend()
    return figure

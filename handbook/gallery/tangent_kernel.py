r"""The tangent kernel: how outputs on one sample move when another is learnt.

## What it means

$K = DF\,DF^\top$, $DF$ the derivative of all outputs by all weights. Its smallest
eigenvalue bounds how fast the loss falls: for the square loss $\lVert\nabla L\rVert^2
\ge 2\lambda_{\min}L$, the Polyak–Łojasiewicz inequality. Its leading eigenvectors are
what is learnt first.

## How it is computed

Where samples do not act on one another, from what entered each layer and as many
backward passes as a sample has outputs; through batch statistics, by a backward pass
a row. Only a slice of the derivative is held at a time, within `matrix_bytes`, and
the peak is forecast. A random quadratic form of the result is compared with plain
backward passes; where the two disagree, the slower way is taken. Errors bound
rounding.

## When it lies

- It describes training for as long as it does not change. Narrow networks leave it
  soon.
- A smallest eigenvalue below `eigenvalue_error` is not known to be positive.
- `trace_outputs=True` averages over outputs: another matrix, with other eigenvalues.
"""

from matplotlib.figure import Figure

from handbook.subjects import digits, trained
from theodolite import instruments


def draw() -> Figure:
    """Show the kernel of sixty digits, sorted by class."""
    x, y = digits(60)
    order = y.argsort()
    reading = instruments.tangent_kernel(
        trained(), x[order], norm_mode="eval", trace_outputs=True
    )
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(reading.matrix, cmap="viridis")
    axes.set(xlabel="sample, sorted by class", ylabel="sample")
    axes.set_title(
        f"λmin = {reading.smallest:.2e} ± {reading.eigenvalue_error:.0e}", fontsize=10
    )
    figure.colorbar(image)
    return figure

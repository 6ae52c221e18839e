r"""Weight and batch normalisation, by autodiff.

Weight normalisation writes $w = g\,v/\|v\|$, batch normalisation scales each unit over
the batch. Closed forms of their gradients meet PyTorch's own layers.

Poggio & Liao (2020), Generalization in deep network classifiers trained with the square
loss, appendix A, section 2.3 and footnotes 3 and 16. The claim in our words: both
normalisations follow the gradient along the sphere, of all weights or of each row.
Cost: a second at QUICK.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    revision=2,
    drawings=(
        Drawing(
            "convolution_norms",
            "Norm of a unit image after a convolution with a constant kernel of norm "
            "one. A matrix of norm one would keep it below the line.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "But for the Jacobian $\\epsilon$ of batch normalisation is $10^{-30}$, so "
        "that invariance is exact in doubles.",
    ),
)

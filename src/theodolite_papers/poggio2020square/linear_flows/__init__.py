r"""Linear classifiers: does the end depend on the start?.

A linear classifier $\rho v^T x$ follows its norm and its direction under the square or
the exponential loss. Flows are integrated, rests solved for, and gradient descent run
from several starts, on both sides of $\rho = 0$.

Poggio & Liao (2020), Generalization in deep network classifiers trained with the square
loss, appendices E and G. The claim in our words: with normalisation and decay the end
does not depend on the start, without decay it does. Cost: seconds at QUICK.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    drawings=(
        Drawing(
            "linear_ends",
            "Norm reached without decay over the least norm that interpolates, by "
            "the norm at the start. Lines are flows, points gradient descent "
            "extrapolated to steps of length zero.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "The factor of proportion in Eq 33 is taken as 1; a positive factor does not "
        "change the sign of what the direction contributes.",
    ),
)

r"""Theorems 1 and 2, lemma 4, figure 1(a–c): how path lengths weigh.

In the model paths of length $r$ have the weight $\epsilon_r =
\frac{1}{z}\binom{p-1}{r-1}\beta^r$, $\sum_r \epsilon_r^2 = 1$. Closed forms in the log
domain, up to depths of a million, are set beside the definition in whole numbers,
beside derivatives by autodiff, and beside the terms of real networks with shared
weights, taken apart by length: where the greatest weight is, how narrow the band around
it, what scale moves it, and which of the printed formulas are right.

Littwin & Wolf (2016), The Loss Surface of Residual Networks, sections 3 and 4 and their
proofs. The claim in our words: paths of length r weigh as a binomial does, squared and
scaled to one; the weight lies in a narrow band around a share of the depth that the
scale of the weights alone decides. Cost: seconds at QUICK.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size=None,  # a law
    drawings=(
        Drawing(
            "weights",
            "Figure 1(a–c): weights of path lengths at depth 100. Bars: whole numbers; "
            "dashed: closed form in the log domain.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "Figure 1 is called a histogram: $\\epsilon_r$ is drawn, and not its square.",
        "Limits are judged at depths up to a million, in whole numbers up to 400 "
        "(2,000 at the paper scale).",
    ),
)

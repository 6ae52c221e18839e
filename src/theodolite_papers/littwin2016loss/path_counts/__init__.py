r"""Eqs 1 to 13: a residual network as a sum over paths.

A path takes a layer or passes it by its skip, so that a residual network of depth $p$
has $\binom{p-1}{r-1} n^r$ paths of length $r$ from each input. Small networks are run
once with their gates recorded, and every path of them is listed: how many there are,
what they add up to, and how often the same product of weights occurs where weights are
shared. The model's chain from there to a sum of normal variables is followed step by
step at the same weights, and its assumptions are checked.

Littwin & Wolf (2016), The Loss Surface of Residual Networks, Eqs 1, 2, 4 and 7 to 13,
definitions 1 and 2, assumptions A1 to A4, lemmas 1 and 2. The claim in our words: the
output of a fully connected residual network is a sum over paths of all lengths, which
gathers into products of few different weights, each with a normal variable. Cost:
seconds at QUICK.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size=None,  # the paper counts and measures nothing
    drawings=(
        Drawing(
            "paths",
            "Paths by length of the deepest residual network: listed one by one, and "
            "by the formula.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "Widths of 2 to 4, so that all paths can be listed; A3 is made exact by "
        "$W_l[a,b] = w_{(a+b+l)\\,\\mathrm{mod}\\,\\Lambda}$, or by the input alone in "
        "the first layer.",
        "A plain network too sums its last layer, so that $n_p = n$ in place of 1.",
        "The losses of Eq 3 are definitions, and Eqs 5 and 6 are of the spin glass.",
    ),
)

r"""Theorem 1: interpolation with weights that shrink as depth grows.

Samples and labels are points on the unit sphere, at least $\rho$ apart. A unit $x +
W_2\,\mathrm{ReLU}(W_1 x + b)$ can move one of them a short step and leave the others
alone, so a chain of units walks each sample to its label, around the caps of the
others. More units, shorter steps: the weights shrink like $R^{-1/2}$. Here the network
is built for given points, run in torch, and its norms are set beside the bound.

Li et al. (2016), Demystifying ResNet, theorem 1, lemmas 1 and 2, definition 3,
assumptions 1 and 2, Eqs 3–7 and 11–20, figure 10. Cost: seconds at QUICK, minutes at
PAPER.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size=None,  # a theorem: nothing is trained in the paper
    datasets=lambda config: (config.dataset,),
    drawings=(
        Drawing(
            "path",
            "Left: one sample's way to its label (dots: a unit each) around the caps "
            "of two others that the straight arc, dashed, would enter. Right: largest "
            "norm of a weight matrix against the number of units, by number of samples "
            "and width; lines are the bound of the proof, corrected.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "Units are built from where the units before them really leave the samples: "
        "from the path alone, as in the proof, rounding takes over at small "
        "distances.",
        "Detours keep a billionth of their radius more distance than asked for, so "
        "that rounding cannot put a sample inside a cap.",
        "Random points and labels of unit norm; one-hot labels only where they are "
        "distinct.",
    ),
    revision=2,
)

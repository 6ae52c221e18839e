"""Appendices C and F: margins, norms and a bound on the error.

Small norms mean wide margins, and the bound on the expected error grows with the norm.
Both sides of the inequality are evaluated on trained networks with explicit constants
for the complexity of normalised ones, which is computed exactly where all signs can be
listed.

Poggio & Liao (2020), Generalization in deep network classifiers trained with the square
loss: lemma 2, observations 3 and 4, equations 10, 24, 25 and 41 to 45. The claim in our
words: solutions of small norm have wide margins and a better bound on their error.
Cost: seconds at QUICK, minutes at PAPER.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    revision=2,
    datasets=lambda config: ("digits",),
    splits=("train", "test"),
    drawings=(
        Drawing(
            "bound_and_error",
            "Both sides of the bound for trained networks, by the decay that sets "
            "their norm; margin 1 of the outputs, failing with probability 0.05. A "
            "bound above 1 says nothing.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "The paper leaves the constants open. The complexity is bounded as by "
        "Golowich, Rakhlin and Shamir, $(\\sqrt{2 L \\ln 2} + 1)/\\sqrt{N}$ for unit "
        "inputs; the deviation is $3\\sqrt{\\ln(2/\\delta)/2N}$, as an empirical "
        "complexity needs; norms found by training need a union over norms.",
        "Two digits, averaged to 16 pixels, stand for CIFAR-10.",
    ),
)

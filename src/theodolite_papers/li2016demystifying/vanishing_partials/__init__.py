"""Lemmas 3 and 4: which derivatives vanish at zero, and which coincide.

A unit with one matrix at zero is the identity, whatever its others are. So a derivative
at zero sees a unit only if it goes through all of its matrices (lemma 3), and units
that are not touched may be left out or moved (lemma 4). All sets of matrices up to an
order are tried, along random directions.

Li et al. (2016), Demystifying ResNet, lemmas 3 and 4, definitions 4 and 5. Cost:
seconds.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size=None,  # lemmas
    drawings=(
        Drawing(
            "partials",
            "Share of mixed derivatives at zero that are not zero, over all sets of "
            "matrices of two units, against the order of the derivative. Hollow bars: "
            "what lemma 3 allows; full bars: measured.",
            figure.shares,
            figure.draw,
        ),
    ),
    departures=(
        "Random Gaussian inputs and targets, and directions in place of "
        "single entries.",
    ),
)

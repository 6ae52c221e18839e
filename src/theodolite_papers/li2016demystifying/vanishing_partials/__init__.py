"""Lemmas 3 and 4: which mixed derivatives vanish at zero, and which are the same.

Li et al. (2016), Demystifying ResNet, lemmas 3 and 4, definitions 4 and 5. The claim
in our words: at zero a derivative of any order can be non-zero only if it goes
through every matrix of some unit, and second derivatives do not care which units
their two matrices are in, only about their order.

Departures: random data. Cost: seconds.
"""

from theodolite.studies import Drawing, Study

from .claims import CLAIMS
from .config import PRESETS, cells
from .figure import compare, draw, shares
from .measure import measure
from .predict import predict

STUDY = Study(
    title="Lemmas 3 and 4: which derivatives vanish at zero, and which coincide",
    summary=(
        "A unit with one matrix at zero is the identity, whatever its others are. So a "
        "derivative at zero sees a unit only if it goes through all of its matrices "
        "(lemma 3), and units that are not touched may be left out or moved (lemma 4). "
        "All sets of matrices up to an order are tried, along random directions."
    ),
    presets=PRESETS,
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=CLAIMS,
    drawings=(
        Drawing(
            "partials",
            "Share of mixed derivatives at zero that are not zero, over all sets of "
            "matrices of two units, against the order of the derivative. Hollow bars: "
            "what lemma 3 allows; full bars: measured.",
            shares,
            draw,
        ),
    ),
    departures=(
        "Random Gaussian inputs and targets, and directions in place of "
        "single entries.",
    ),
)

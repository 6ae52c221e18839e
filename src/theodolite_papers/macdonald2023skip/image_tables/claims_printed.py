"""Claims that the printed tables alone decide."""

import math
from itertools import combinations

from theodolite.core import (
    Choice,
    Grade,
    Number,
    PredictedAndMeasured,
    Quantity,
    Read,
    Test,
    above,
    below,
    beyond,
    erratum,
    every,
    inside,
    known,
    our_margin,
)

from ..shared.image_config import MODIFIED, ORIGINAL, RATES
from ..shared.printed_tables import (
    KEPT,
    between_models,
    between_rates,
    homogeneity,
    significance,
)

LOSS, ACCURACY = "printed_loss", "printed_accuracy"
MODELS = (ORIGINAL, MODIFIED)
ALIKE = our_margin(
    math.log10(1.1), "a tenth; in table 1 rates 0.1 and 0.02 are a factor 3.5"
)
APART = above(math.log10(1.25), source="ours", why="a quarter, well beyond that tenth")
NOT_SIGNIFICANT = above(0.05, source="ours", why="the usual level of significance")
_CIFAR = [(table, rate) for table in (1, 2) for rate in RATES]
_TRIALS, _CHANCE = 10, 10.0


def _rows_differ(table: int) -> Test:
    """Judge whether the final loss at rate 0.02 differs from that at 0.1."""
    return every(
        inside(between_rates(LOSS, table, scale, (0.02, 0.1), log=True), APART)
        for scale in MODELS
    )


_ROWS_AGREE = every(
    inside(between_rates(LOSS, 2, scale, rates, log=True), ALIKE)
    for scale in MODELS
    for rates in combinations(RATES, 2)
)


def _not_significant(cells: list[tuple[int, float]], of: int) -> Test:
    return every(
        inside(significance(ACCURACY, table, rate, cells=of), NOT_SIGNIFICANT)
        for table, rate in cells
    )


def _others(both: PredictedAndMeasured) -> Quantity:
    """Read the accuracy that the kept trials would need if the others are at chance."""
    row = both.predicted.only(
        quantity=ACCURACY, table=1, rate=0.2, added_identity=ORIGINAL
    )
    total = _TRIALS * row["value"] - (_TRIALS - KEPT) * _CHANCE
    name = f"accuracy in percent of the other {KEPT} trials"
    return known(name, total / KEPT, _TRIALS * row["rounding"] / KEPT)


def _with_all(both: PredictedAndMeasured) -> dict[str, Number]:
    row = both.predicted.only(
        quantity=ACCURACY, table=1, rate=0.2, added_identity=ORIGINAL
    )
    mean = (KEPT * row["value"] + (_TRIALS - KEPT) * _CHANCE) / _TRIALS
    return {"accuracy of all ten trials, diverged ones at chance": Number(mean)}


def _lower(table: int, rate: float) -> Read:
    return between_models(LOSS, table, rate, log=True)


CLAIMS = (
    beyond(
        name="ends-lower-in-print",
        place="Tables 1 to 3; the paper's words are on speed",
        statement="In every printed row the modified network ends at the lower loss.",
        test=every(
            *(inside(_lower(table, rate), below(0)) for table, rate in _CIFAR),
            *(inside(_lower(3, rate), below(0)) for rate in RATES[1:]),
        ),
        own_rows_only=True,
        sizes=(),  # of printed numbers
        rival="a row in which the original ends lower",
    ),
    erratum(
        name="one-rate-in-table-2",
        grade=Grade.READING,
        place="Table 2",
        statement="Table 2 compares four learning rates on CIFAR-100.",
        printed="four rows for the rates 0.2, 0.1, 0.05 and 0.02",
        corrected="the published script passes 0.1 to the optimiser whatever the row: "
        "the rows are four repetitions at 0.1, and agree within a tenth, while those "
        "of table 1, from the same networks and schedule, do not",
        test=_rows_differ(2),
        corrected_test=every(_ROWS_AGREE, _rows_differ(1)),
        own_rows_only=True,
        sizes=(),  # of printed numbers
        rival="losses that fall with the rate, as in table 1",
        asides=lambda both: {
            f"p of equal {word}, {name}": homogeneity(both, quantity, 2, scale)
            for quantity, word in ((LOSS, "losses"), (ACCURACY, "accuracies"))
            for scale, name in ((ORIGINAL, "original"), (MODIFIED, "modified"))
        },
    ),
    erratum(
        name="accuracies-differ-in-print",
        grade=Grade.READING,
        place="Section 6.3, tables 1 and 2",
        statement="Validation accuracies of the two models are not statistically "
        "significantly different on CIFAR-10 and CIFAR-100.",
        printed="no significant difference",
        corrected="none at the rates of figure 3, 0.1 and 0.05; but on CIFAR-10 the "
        "modified network is worse at 0.02, and on CIFAR-100 better in the row of 0.1",
        test=_not_significant(_CIFAR, len(_CIFAR)),
        corrected_test=every(
            _not_significant([(1, 0.1), (2, 0.05)], 1),
            inside(between_models(ACCURACY, 1, 0.02), below(0)),
            inside(between_models(ACCURACY, 2, 0.1), above(0)),
        ),
        own_rows_only=True,
        sizes=(),  # of printed numbers
        rival="differences that chance over ten trials explains",
        choices=(
            Choice(
                what="Welch's test on the printed means and deviations, p-values times "
                "the eight rows",
                why="the paper names no test, and prints deviations alone",
            ),
        ),
    ),
    erratum(
        name="trials-left-out",
        grade=Grade.READING,
        place="Table 1, rate 0.2",
        statement="Table 1 gives means over the ten trials that were run at each rate.",
        printed="48.14 % of the original network at rate 0.2, after 'We ran 10 "
        "trials'; that six which diverged are left out is said of the plots alone",
        corrected="the mean of the four trials that did not diverge; with the six "
        "others at chance it is 25.3 %",
        test=inside(_others, below(100)),
        own_rows_only=True,
        sizes=(),  # of printed numbers
        rival="a mean that ten trials can have of which six answer by chance",
        choices=(
            Choice(
                what="a network that diverged is right in a tenth of the cases",
                why="scores that are no numbers choose the first class",
            ),
        ),
        asides=_with_all,
    ),
)

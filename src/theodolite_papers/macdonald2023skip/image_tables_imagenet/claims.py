"""Claims of figures 3 and 6 and table 3 on networks trained on ImageNet."""

import math
from itertools import product

from theodolite.core import (
    Choice,
    Claim,
    Grade,
    Known,
    PredictedAndMeasured,
    ReadAs,
    Row,
    Test,
    above,
    below,
    erratum,
    every,
    inside,
    known,
    our_margin,
    readings,
)

from ..shared.image_claims import (
    ACCURACY,
    LOST_COUNT,
    SPEED,
    faster,
    lost_share,
    modified_less_original,
)
from ..shared.image_config import MODIFIED, ORIGINAL
from ..shared.printed_tables import significance

BEST = 0.05  # where table 3 has the original network's least final loss
_CHANCE = 0.1  # percent, of a thousand classes
AT_CHANCE = above(
    math.log(1000), source="ours", why="the loss of a guess among a thousand classes"
)
SAME_DEVIATION = our_margin(0.05, "trials that went well differ by tenths of a point")
MOST = above(
    0.5, source="ours", why="the figure's caption says that it did not converge"
)


SIGNIFICANT = below(0.05, source="ours", why="the usual level of significance")


# What "the ImageNet experiment" may be, and why.
EXPERIMENTS = {
    "rate 0.05": (
        (BEST,),
        "section 6.3: the best rate is that of the least final loss",
    ),
    "rate 0.1": ((0.1,), "ours: the rate of the best accuracies"),
    "every rate that converged": ((0.1, 0.05, 0.02), "ours: the whole of table 3"),
}


def _natural_tests() -> Test:
    """Judge by every usual two-sided test of two means; the paper names none."""

    def read_as(experiment: str, sample: bool, pooled: bool) -> ReadAs:
        rates, source = EXPERIMENTS[experiment]
        kind = {"pooled": pooled, "sample": sample, "better": True}
        test = "Student's test, one variance" if pooled else "Welch's test"
        deviations = "samples" if sample else "populations"
        return ReadAs(
            f"{experiment}, {test}, deviations of {deviations}",
            "The printed mean of three trials is larger at the level of 5 %.",
            source,
            every(
                inside(significance("printed_accuracy", 3, rate, **kind), SIGNIFICANT)
                for rate in rates
            ),
        )

    tests = product(EXPERIMENTS, (False, True), (False, True))
    return readings(*(read_as(*kind) for kind in tests))


def _cell(both: PredictedAndMeasured, quantity: str) -> Row:
    labels = {"table": 3, "rate": 0.2, "added_identity": ORIGINAL}
    return both.predicted.only(quantity=quantity, **labels)


def _third_loss(both: PredictedAndMeasured) -> Known:
    """Read the largest possible value of one of three losses, given their mean."""
    row = _cell(both, "printed_loss")
    n = row["n"]
    return known(
        "most loss of one trial of three", n * row["value"], n * row["rounding"]
    )


def _deviation(both: PredictedAndMeasured) -> Known:
    r"""Read the printed deviation minus that of two equal trials and one at chance.

    Of $a, a, c$ with mean $m$ the population's deviation is $(m - c)/\sqrt 2$.
    """
    row = _cell(both, "printed_accuracy")
    wanted = (row["value"] - _CHANCE) / math.sqrt(2)
    name = "printed deviation less that of two equal trials and one at chance"
    return known(name, row["spread"] - wanted, 2 * row["rounding"])


CLAIMS = (
    Claim(
        name="faster-on-imagenet",
        place="Figure 3, section 6.3",
        statement="At the rate at which the original network does best, the modified "
        "one trains faster on ImageNet.",
        test=faster(SPEED, rate=BEST, dataset="imagefolder"),
        rival="curves that cross or coincide, or a slower modified network",
        choices=(LOST_COUNT,),
    ),
    Claim(
        name="better-on-imagenet",
        place="Section 6.3, table 3",
        statement="The modified network has the better accuracy on ImageNet.",
        test=inside(
            modified_less_original(ACCURACY, rate=BEST, dataset="imagefolder"), above(0)
        ),
        rival="equal accuracies, as on CIFAR",
        choices=(LOST_COUNT,),
    ),
    Claim(
        name="modified-fails-at-0.2",
        place="Figure 6",
        statement="The modified network does not converge on ImageNet at rate 0.2.",
        test=lost_share(MODIFIED, MOST, rate=0.2, dataset="imagefolder"),
        rival="runs that end like those at smaller rates",
        choices=(LOST_COUNT,),
    ),
    erratum(
        name="one-row-two-counts",
        grade=Grade.READING,  # no sentence says that both are of the same trials
        place="Table 3, rate 0.2",
        statement="Accuracy and final loss of a row of table 3 are of the same trials.",
        printed="49.24 ± 34.75 % and a loss of 1.0285 ± 0.0066, of three trials",
        corrected="one trial of three ended at chance, 0.1 %: the accuracy counts it "
        "beside two of 73.8 %, the loss leaves it out",
        test=inside(_third_loss, AT_CHANCE),
        corrected_test=inside(_deviation, SAME_DEVIATION),
        rival="three trials of which none failed",
        choices=(
            Choice(
                what="a network at chance has the loss of chance or more",
                why="it cannot be sure and right",
            ),
        ),
    ),
    Claim(
        name="better-in-print",
        place="Section 6.3, table 3",
        statement="Of the printed numbers, the modified network's accuracy on "
        "ImageNet is significantly better.",
        test=_natural_tests(),
        rival="a difference that chance over three trials explains",
        choices=(
            Choice(
                what="two-sided tests; deviations of populations, as the row of rate "
                "0.2 has them, or of samples",
                why="the sentence before says of CIFAR that accuracies are not "
                "significantly different",
            ),
        ),
    ),
)

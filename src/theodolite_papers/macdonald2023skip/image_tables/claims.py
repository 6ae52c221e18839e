"""Claims of figures 3 and 4 and table 1, judged on trained networks."""

import math
from collections.abc import Callable
from functools import partial

from theodolite.core import (
    Choice,
    Claim,
    Number,
    PredictedAndMeasured,
    Quantity,
    Read,
    ReadAs,
    Region,
    Select,
    Test,
    above,
    below,
    between,
    beyond,
    by_network,
    combined,
    each,
    every,
    group_means,
    inside,
    largest,
    our_margin,
    readings,
    somewhere,
)
from theodolite.core import difference as gap

from ..shared.image_claims import (
    ACCURACY,
    ANY_PRECISION,
    BATCH_ACCURACY,
    EARLY,
    FINAL,
    FIRST,
    LOST,
    LOST_COUNT,
    SAME_ACCURACY,
    SPEED,
    faster,
    faster_at_each_rate,
    lost_share,
    pair,
    same_accuracy,
)
from ..shared.image_config import MODIFIED, ORIGINAL
from ..shared.printed_tables import model, sampled_from
from .claims_printed import CLAIMS as PRINTED


def as_printed(rows: Select, quantity: str, margin: Region) -> Callable[[float], Test]:
    """Judge whether our cells at a rate equal the printed ones within a margin."""

    def at(rate: float) -> Test:
        return every(
            inside(_from_print(rows, quantity, rate, scale), margin)
            for scale in (ORIGINAL, MODIFIED)
        )

    return at


def _from_print(rows: Select, quantity: str, rate: float, scale: float) -> Read:
    """Read our mean minus the printed one: log10 of a loss, points of an accuracy."""
    log = quantity == "printed_loss"
    word = "log10 final loss" if log else "accuracy"
    name = f"{word} less printed, {model(scale)}, rate {rate:g}"

    def read(both: PredictedAndMeasured) -> Quantity:
        mine = by_network(rows.at(rate=rate, added_identity=scale)(both), log=log)
        cell = {"table": 1, "rate": rate, "added_identity": scale}
        printed = sampled_from(both.predicted.only(quantity=quantity, **cell), log=log)
        return combined(name, [mine.mean(name), printed], (1.0, -1.0))

    return read


def loss_cells(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return our final losses, each under the name of its cell and what is printed."""
    return _cells(both, FINAL, "printed_loss", "")


def accuracy_cells(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return our accuracies likewise, by batch and by running statistics."""
    batch = _cells(both, BATCH_ACCURACY, "printed_accuracy", "")
    running = _cells(both, ACCURACY, "printed_accuracy", "by running statistics, ")
    return batch | running


def _cells(
    both: PredictedAndMeasured, rows: Select, quantity: str, how: str
) -> dict[str, Number]:
    ours = group_means(rows.at(dataset="cifar10")(both), ("rate", "added_identity"))
    numbers: dict[str, Number] = {}
    for row in ours:
        labels = {k: row[k] for k in ("rate", "added_identity")}
        cell = both.predicted.only(quantity=quantity, table=1, **labels)
        printed = f"printed {cell['value']:g} ± {cell['spread']:g}"
        name = f"{model(row['added_identity'])} at {row['rate']:g}, {how}{printed}"
        several = row["n"] > 1
        name = name if several else f"{name}; of one network"
        numbers[name] = Number(row["value"], row["error"] if several else None)
    return numbers


CIFAR = "cifar10"
BEST = 0.1  # appendix C: "the optimal learning rate, 0.1 for CIFAR10"
UNSTABLE = 0.2  # appendix C: the one rate at which networks diverged
# Clopper & Pearson at 95 % for 6 of 10.
SIX_OF_TEN = between(
    0.262, 0.878, source="ours", why="the shares that 6 lost of 10 leave possible"
)
SAME_LOSS = our_margin(
    math.log10(1.25),
    "a factor 1.25 is below the least step between neighbouring rates of table 1, 1.3",
)
SAME_POINTS = our_margin(
    1.0, "a point, some two to four printed deviations over trials"
)
SAME_IN_TF32 = our_margin(
    math.log10(1.05),
    "a twentieth, below the difference of modified and original networks",
)
RATES_DIFFER = above(
    math.log10(1.1), source="ours", why="a tenth, within which table 2's rows agree"
)


CIFAR_FINAL = FINAL.at(dataset=CIFAR)
CIFAR_SPEED = SPEED[0].at(dataset=CIFAR), SPEED[1].at(dataset=CIFAR)
CIFAR_ACCURACY = BATCH_ACCURACY.at(dataset=CIFAR)


def _stable(rate: float) -> bool:
    return rate < UNSTABLE


def _final(rate: float, region: Region) -> Test:
    name = f"log10 final training loss of modified less original, rate {rate:g}"
    return inside(gap(*pair(CIFAR_FINAL, rate=rate), log=True, name=name), region)


def _above_best(region: Region) -> Callable[[float], Test]:
    """Judge how much higher the original's final loss is than at its best rate."""
    rows = CIFAR_FINAL.at(added_identity=ORIGINAL)

    def at(rate: float) -> Test:
        name = f"log10 final loss at {rate:g} less at {BEST:g}, original"
        both = rows.at(rate=rate), rows.at(rate=BEST)
        return inside(gap(*both, paired=False, log=True, name=name), region)

    return at


def _as_in_bf16(scale: float) -> Test:
    """Judge whether TF32 changes the losses of networks of the same starts."""
    log, _ = ANY_PRECISION
    rows = log.at(added_identity=scale, rate=BEST, dataset=CIFAR)
    both = rows.at(precision="tf32"), rows.at(precision="bf16")
    name = f"mean log10 training loss in TF32 less in bf16, {model(scale)}"
    return inside(gap(*both, name=name), SAME_IN_TF32)


def _tested_alike(rate: float) -> Test:
    def model(scale: float, word: str) -> Test:
        labels = {"added_identity": scale, "rate": rate, "dataset": CIFAR}
        both = BATCH_ACCURACY.at(**labels), ACCURACY.at(**labels)
        name = f"accuracy by batch less by running statistics, {word}"
        return inside(gap(*both, name=name), SAME_ACCURACY)

    return every(model(ORIGINAL, "original"), model(MODIFIED, "modified"))


CLAIMS = (
    Claim(
        name="faster-at-the-best-rate",
        place="Figure 3, section 6.3",
        statement="At rate 0.1, where the original network does best, the modified "
        "one trains faster on CIFAR-10.",
        test=faster(SPEED, rate=BEST, dataset=CIFAR),
        rival="curves that cross or coincide, or a slower modified network",
        choices=(LOST_COUNT,),
    ),
    Claim(
        name="faster-at-first",
        place="Hypothesis 6.1",
        statement="Skips with singular values 1 improve convergence speed at least "
        "initially.",
        test=readings(
            *(
                ReadAs(part, f"Initially is the {part} of training.", source, test)
                for part, source, test in (
                    ("first third", "ours: then the rate falls", faster(EARLY)),
                    ("first tenth", "ours", faster(FIRST)),
                )
            )
        ),
        rival="a modified network that starts no faster",
        choices=(
            LOST_COUNT,
            Choice(what="on average over pairs at all rates", why="no rate is named"),
        ),
    ),
    Claim(
        name="consistently-faster",
        place="Section 6, figure 4",
        statement="The change consistently, albeit modestly, improves convergence "
        "speed.",
        test=readings(
            ReadAs(
                "at the best rate",
                "Consistently is on every data set, at the original's best rate.",
                "figure 3, whose curves are of the best performing rates",
                faster(SPEED, rate=BEST, dataset=CIFAR),
            ),
            ReadAs(
                "at every rate",
                "Consistently is at every rate that was tried.",
                "figure 4, of all rates",
                faster_at_each_rate(CIFAR_SPEED),
            ),
        ),
        rival="a rate at which the original is faster",
        choices=(LOST_COUNT,),
        departures=("CIFAR-10 alone; other data sets have claims of their own",),
    ),
    Claim(
        name="order-of-final-losses",
        place="Table 1",
        statement="The modified network ends at the lower loss at rates 0.1 and 0.05, "
        "and at the higher one at 0.02.",
        test=every(
            _final(0.1, below(0)), _final(0.05, below(0)), _final(0.02, above(0))
        ),
        rival="the same order at every rate",
        choices=(LOST_COUNT,),
    ),
    Claim(
        name="same-accuracy",
        place="Section 6.3, table 1",
        statement="Test accuracies of the two networks do not differ on CIFAR-10.",
        test=each(
            "rate",
            CIFAR_ACCURACY,
            partial(same_accuracy, dataset=CIFAR),
            where=_stable,
            least=3,
        ),
        rival="a difference of half a point or more",
        choices=(
            LOST_COUNT,
            Choice(
                what="at the rates at which no network of the paper diverged",
                why="with diverged networks left out there is nothing to compare",
            ),
        ),
    ),
    Claim(
        name="best-rate",
        place="Appendix C",
        statement="Of the four rates 0.1 gives the original network the least loss.",
        test=each(
            "rate",
            CIFAR_FINAL.at(added_identity=ORIGINAL),
            _above_best(above(0)),
            where=lambda rate: rate != BEST,
            least=3,
        ),
        rival="another rate that ends as low",
        choices=(LOST_COUNT,),
    ),
    Claim(
        name="original-diverges",
        place="Appendix C",
        statement="At rate 0.2 the original network diverges in 6 trials of 10.",
        test=lost_share(ORIGINAL, SIX_OF_TEN, rate=UNSTABLE, dataset=CIFAR),
        rival="training that always, or never, goes wrong there",
        choices=(LOST_COUNT,),
    ),
    beyond(
        name="modified-never-diverges",
        place="Beside appendix C, which counts lost runs of the original alone",
        statement="The modified network diverges at no rate: none of its runs is lost.",
        test=inside(
            largest(LOST.at(added_identity=MODIFIED, dataset=CIFAR)),
            below(1, source="ours", why="a lost run counts as 1"),
        ),
        rival="one run that is lost",
        choices=(LOST_COUNT,),
    ),
    beyond(
        name="modified-less-stable",
        place="Beside table 1 and appendix C",
        statement="At rate 0.2 the added identity makes training less stable: more "
        "modified runs are lost than original ones.",
        test=inside(
            gap(
                *pair(LOST, rate=UNSTABLE, dataset=CIFAR),
                name="share of lost runs, modified less original, rate 0.2",
            ),
            above(0),
        ),
        rival="as many lost runs of both",
        choices=(LOST_COUNT,),
    ),
    Claim(
        name="losses-as-printed",
        place="Table 1",
        statement="Final losses are those of table 1, at rates 0.1, 0.05 and 0.02.",
        test=each(
            "rate",
            CIFAR_FINAL,
            as_printed(CIFAR_FINAL, "printed_loss", SAME_LOSS),
            where=_stable,
            least=3,
        ),
        rival="a loss that another rate of the table has",
        choices=(LOST_COUNT,),
        asides=loss_cells,
    ),
    Claim(
        name="accuracies-as-printed",
        place="Table 1",
        statement="Test accuracies are those of table 1, at rates 0.1, 0.05 and 0.02.",
        test=each(
            "rate",
            CIFAR_ACCURACY,
            as_printed(CIFAR_ACCURACY, "printed_accuracy", SAME_POINTS),
            where=_stable,
            least=3,
        ),
        rival="accuracies a point or more away",
        choices=(
            LOST_COUNT,
            Choice(
                what="networks are tested with the statistics of each test batch",
                why="so does the published script, which never leaves training mode",
            ),
        ),
        asides=accuracy_cells,
    ),
    beyond(
        name="rates-matter",
        place="Beside table 2",
        statement="On CIFAR-10 final losses do depend on the rate: at 0.05 or at 0.02 "
        "the original network ends higher than at 0.1, by more than a tenth.",
        test=somewhere(
            "rate",
            CIFAR_FINAL.at(added_identity=ORIGINAL),
            _above_best(RATES_DIFFER),
            where=lambda rate: rate < BEST,
        ),
        rival="equal losses at all rates, as table 2 prints",
    ),
    beyond(
        name="batch-statistics-alike",
        place="Beside table 1",
        statement="Testing with the statistics of test batches gives the accuracy "
        "that running statistics give.",
        test=each("rate", CIFAR_ACCURACY, _tested_alike, where=_stable),
        rival="accuracies that depend on how one tests",
    ),
    beyond(
        name="faster-in-tf32",
        place="Beside figure 3; our other networks are trained in bf16",
        statement="In TF32 too the modified network trains faster at rate 0.1.",
        test=faster(ANY_PRECISION, rate=BEST, dataset=CIFAR, precision="tf32"),
        rival="a speed that is bf16's",
        choices=(LOST_COUNT,),
    ),
    beyond(
        name="bf16-costs-nothing",
        place="Beside table 1",
        statement="At rate 0.1 networks that start alike have the same losses in "
        "TF32 and in bf16.",
        test=every(_as_in_bf16(scale) for scale in (ORIGINAL, MODIFIED)),
        rival="runs that bf16 alone spoils",
        choices=(LOST_COUNT,),
    ),
    *PRINTED,
)

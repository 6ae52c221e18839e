"""Claims of figure 9 and section 5.3.2 on depth and shortcut depth."""

from dataclasses import replace

from theodolite.core import (
    Choice,
    Claim,
    Judgement,
    PredictedAndMeasured,
    Select,
    Test,
    above,
    below,
    beyond,
    each,
    every,
    inside,
    ordered,
    undecided,
)
from theodolite.core import difference as gap

from ..shared.cifar_tables import ERROR
from .config import SHOWN

OTHERS = tuple(n for n in SHOWN if n != 2)
VERY_DEEP = 400


def error(shortcut: int, depth: int) -> Select:
    """Select the final errors of a shortcut depth at a depth."""
    return ERROR.at(shortcut=shortcut, depth=depth)


def _depths(both: PredictedAndMeasured) -> tuple[list[int], list[int]]:
    """Return the depths up to 400 and those beyond."""
    depths = ERROR(both).levels("depth")
    return [d for d in depths if d <= VERY_DEEP], [d for d in depths if d > VERY_DEEP]


def only_two_gains(low: int, high: int) -> Test:
    """Judge whether only shortcut depth 2 has a lower error when deeper."""
    return every(
        inside(gap(error(2, high), error(2, low)), below(0)),
        *(inside(gap(error(n, high), error(n, low)), above(0)) for n in OTHERS),
    )


def _below(both: PredictedAndMeasured) -> Judgement:
    depths, _ = _depths(both)
    if len(depths) < 2:
        return undecided("fewer than two depths were trained to the end")
    return only_two_gains(depths[0], depths[-1])(both)


def _beyond(both: PredictedAndMeasured) -> Judgement:
    depths, deep = _depths(both)
    if not depths or not deep:
        return undecided(
            f"no network deeper than {VERY_DEEP} was trained as long as the others: "
            "at least two seeds of each shortcut depth would have to be",
            missing=True,
        )
    return only_two_gains(depths[-1], deep[-1])(both)


def _best(both: PredictedAndMeasured) -> Judgement:
    depths, _ = _depths(both)
    if not depths:
        return undecided("no network was trained to the end")
    deep = depths[-1]
    return every(ordered(error(2, deep), error(n, deep)) for n in OTHERS)(both)


def _worse(shortcut: int) -> Test:
    """Judge whether a shortcut depth has a higher error than each one in the figure."""

    def test(both: PredictedAndMeasured) -> Judgement:
        lengths = (*SHOWN, shortcut)
        sets = [set(ERROR.at(shortcut=n)(both).levels("depth")) for n in lengths]
        common = set.intersection(*sets)
        errors = {
            n: replace(ERROR.at(shortcut=n), test=lambda row: row["depth"] in common)
            for n in lengths
        }
        return every(ordered(errors[n], errors[shortcut]) for n in SHOWN)(both)

    return test


CLAIMS = (
    Claim(
        name="only-two-gains-beyond-400",
        place="Section 5.3.2, figure 9",
        statement="Beyond depth 400 only networks with shortcut depth 2 gain from "
        "more depth; all others degrade.",
        test=_beyond,
        rival="gains, or losses, for every shortcut depth alike",
    ),
    Claim(
        name="longer-than-four-worse",
        place="Figure 9, caption",
        statement="Networks with a shortcut depth larger than 4 err more than those "
        "with shortcut depths 1 to 4; here 6 and 12.",
        test=each("shortcut", ERROR, _worse, where=lambda n: n > max(SHOWN)),
        rival="longer shortcuts that err as much as shorter ones",
        choices=(
            Choice(
                what="worse than each length shown, on average over the depths trained",
                why="the caption names neither depths nor what they are worse than",
            ),
        ),
    ),
    beyond(
        name="only-two-gains-below-400",
        place="Beside section 5.3.2",
        statement="Already from the least to the largest depth trained, below 400, "
        "only networks with shortcut depth 2 gain from depth; 1, 3 and 4 degrade.",
        test=_below,
        rival="gains, or losses, for every shortcut depth alike",
    ),
    beyond(
        name="two-shortcut-best-when-deep",
        place="Beside figure 9",
        statement="At the largest depth trained, below 400, 2-shortcut networks err "
        "less than 1-, 3- and 4-shortcut ones with the same number of parameters.",
        test=_best,
        rival="another shortcut depth with the same or a smaller error",
    ),
)

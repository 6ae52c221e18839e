"""Is curvature on batches, with batch statistics, that of the whole set? Ours."""

import math
from functools import partial
from typing import Any

from theodolite.core import (
    Choice,
    Region,
    Select,
    Test,
    above,
    below,
    beyond,
    each,
    equivalent,
    inside,
    measured,
    ordered,
    our_margin,
)

from .config import (
    BATCHES,
    DESCENT,
    END,
    FROZEN,
    LATE,
    RUNNING,
    START,
    STOCHASTIC,
    TOGETHER,
    WHOLE,
)
from .figure import corners, from_edge, growth_of_gap, samples_less_statistics

ours = partial(beyond, place="Beyond example A.3 and theorem 4.5")
at_edge = partial(
    ours, place="Beyond theorem 5.1, whose step is bounded by the curvature"
)
# All regions were fixed before any curvature of this study was read.
FACTOR = 1.25
QUARTER = math.log10(FACTOR)
NEAR = our_margin(
    QUARTER,
    "a factor of 1.25 either way is less, in logarithms, than half of the least step "
    "between the paper's rates, a factor of 2",
)
BEYOND = above(QUARTER, source="ours", why="outside of what counts as at the edge")
SHORT = below(-QUARTER, source="ours", why="outside of what counts as at the edge")
TENTH = our_margin(math.log10(1.1), "a tenth, ten times the error of an eigenvalue")
TWICE = above(
    math.log10(2), source="ours", why="whoever trusts it halves the learning rate"
)

ALL = measured("sharpness")
LATER = Choice(
    what="late: the last fifth of training, readings of a network averaged in "
    "logarithms",
    why="at the edge of stability curvature goes up and down from step to step",
)
MEAN = Choice(
    what="what batches say: the mean of their largest eigenvalues, over networks in "
    "logarithms",
    why="tools that read a batch report one such eigenvalue; the mean is what they "
    "say on average",
)
TRAINED_ON = Choice(
    what="the whole set: all images that the network is trained on",
    why="it is the loss of these that descent moves down",
)


def _read(reading: str, **labels: Any) -> Select:
    return measured("sharpness", reading=reading, **labels)


def _lately(reading: str, rule: str) -> Select:
    labels = {"reading": reading, "rule": rule}
    return measured("sharpness", lambda row: row["moment"] >= LATE, **labels)


def _above_whole(rule: str) -> Test:
    """Judge at every moment whether batches have more curvature than the whole set."""

    def at(moment: float) -> Test:
        here = {"rule": rule, "moment": moment}
        name = f"log10 batches over whole set, {rule}"
        pair = _read(WHOLE, **here), _read(BATCHES, **here)
        return ordered(*pair, log=True, by=above(0), name=name)

    return each("moment", ALL.at(rule=rule), at)


def _start(rule: str) -> Test:
    name = f"log10 batches over whole set at the start, {rule}"
    pair = (_read(one, rule=rule, moment=START) for one in (BATCHES, WHOLE))
    return equivalent(*pair, margin=NEAR, log=True, name=name)


def _twice(rule: str) -> Test:
    name = f"log10 batches over whole set, late, {rule}"
    pair = _lately(WHOLE, rule), _lately(BATCHES, rule)
    return ordered(*pair, log=True, by=TWICE, name=name)


def _as_whole(reading: str, rule: str) -> Test:
    name = f"log10 {reading} over whole set at the end, {rule}"
    pair = (_read(one, rule=rule, moment=END) for one in (reading, WHOLE))
    return equivalent(*pair, margin=TENTH, log=True, name=name)


def _at_edge(reading: str, rule: str, region: Region) -> Test:
    rows = _lately(reading, rule)
    name = f"log10 late curvature over the edge, {reading}, {rule}"
    return inside(from_edge(rows, rule, name=name), region)


CLAIMS = (
    ours(
        name="batches-overestimate",
        statement="At every moment of training the largest eigenvalue of a batch, by "
        "the batch's own statistics, is on average above that of the whole set by "
        "statistics of the whole set.",
        test=each("rule", ALL, _above_whole),
        rival="statistics of batches that flatten what a mean over samples cannot",
        choices=(MEAN, TRAINED_ON),
    ),
    ours(
        name="alike-at-the-start",
        statement="Before training the two agree within a factor of 1.25.",
        test=each("rule", ALL, _start),
        rival="batches that mislead from the first step on",
        choices=(MEAN, TRAINED_ON),
    ),
    ours(
        name="twofold-late",
        statement="Late in training batches read more than twice the whole set's.",
        test=each("rule", ALL, _twice),
        rival="batches that are off by less, or not at all",
        choices=(MEAN, LATER, TRAINED_ON),
    ),
    ours(
        name="gap-grows",
        statement="The factor between the two is greater late than at the start.",
        test=each("rule", ALL, lambda rule: inside(growth_of_gap(rule), above(0))),
        rival="a factor that training leaves as it is, or closes",
        choices=(MEAN, LATER, TRAINED_ON),
    ),
    ours(
        name="samples-not-statistics",
        statement="After full-batch descent more of the factor is due to reading few "
        "samples than to reading them by their own statistics: it is greater from "
        "single batches to the mean loss of all batches, each by its own statistics, "
        "than from there to the whole set.",
        test=inside(samples_less_statistics, above(0)),
        rival="statistics of batches that account for most of it",
        choices=(MEAN, TRAINED_ON),
        asides=corners,
    ),
    ours(
        name="batches-together-suffice",
        statement="After full-batch descent the mean loss of all batches, each by its "
        "own statistics, has the largest eigenvalue of the whole set within a tenth.",
        test=_as_whole(TOGETHER, DESCENT),
        rival="statistics of batches that make another loss of it",
        choices=(TRAINED_ON,),
    ),
    ours(
        name="constant-statistics-suffice",
        statement="After full-batch descent statistics of the whole set that are held "
        "constant, in place of differentiated, leave the largest eigenvalue within a "
        "tenth.",
        test=_as_whole(FROZEN, DESCENT),
        rival="curvature that normalisation takes away, or adds, by its derivative",
        choices=(TRAINED_ON,),
    ),
    ours(
        name="running-statistics-suffice",
        statement="After training running statistics, as a network in evaluation mode "
        "has them, give the largest eigenvalue of the whole set within a tenth.",
        test=each("rule", ALL, partial(_as_whole, RUNNING)),
        rival="an evaluation mode whose curvature is not that of training",
        choices=(TRAINED_ON,),
    ),
    at_edge(
        name="descent-at-the-edge",
        statement="Late in full-batch descent the largest eigenvalue of the whole "
        r"set is at $2/\eta$ within a factor of 1.25.",
        test=_at_edge(WHOLE, DESCENT, NEAR),
        rival="curvature that stays below, or settles above, what is stable",
        choices=(LATER, TRAINED_ON),
    ),
    at_edge(
        name="batches-misplace-the-edge",
        statement=r"Batches of the same networks put them beyond it: above $2/\eta$ "
        "by more than a factor of 1.25.",
        test=_at_edge(BATCHES, DESCENT, BEYOND),
        rival="batches that tell where the edge is",
        choices=(MEAN, LATER),
    ),
    at_edge(
        name="stochastic-below-the-edge",
        statement="Late in stochastic descent with momentum the largest eigenvalue "
        r"of the whole set is below $2(1 + \mu)/\eta$ by more than a factor of 1.25.",
        test=_at_edge(WHOLE, STOCHASTIC, SHORT),
        rival="an edge that holds for whatever descends",
        choices=(LATER, TRAINED_ON),
    ),
    at_edge(
        name="stochastic-batches-at-the-edge",
        statement=r"There it is the batches that are at $2(1 + \mu)/\eta$, within a "
        "factor of 1.25.",
        test=_at_edge(BATCHES, STOCHASTIC, NEAR),
        rival="batches that are off the edge too",
        choices=(MEAN, LATER),
    ),
)

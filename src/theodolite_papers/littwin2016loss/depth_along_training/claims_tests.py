"""Tests of networks during training, for each kind of network and training."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from theodolite.core import (
    Judgement,
    Number,
    PredictedAndMeasured,
    ReadAs,
    Region,
    Row,
    Rows,
    Select,
    Test,
    above,
    all_of,
    at_each,
    below,
    every,
    inside,
    mean,
    measured,
    ordered,
    our_margin,
    readings,
    renamed,
    steadily,
    trend,
    undecided,
)

from ..shared.layerwise_config import READOUTS, SHORT
from ..shared.trainings import grown, until
from .config import EXEMPT, FACTORS
from .figure import GROUP, foretold, groups, laws, network_name, units_of, whole

Group = Mapping[str, Any]
Make = Callable[[Select], Test]

LAYERS, IMAGES = ("layerwise",), ("images",)
# Settings whose size matters to fully connected networks alone.
LAYER_SIZES = ("n_seeds", "samples", "depths")
OUTPUT, GRADIENT = ("output_depth",), ("gradient_depth",)
# The paper's own measure first: the share of the depth at which theorem 1 puts the
# greatest weight at the measured beta.
BOTH = ("paper_depth", "output_depth")
PARTS = {
    "paper_depth": "$\\beta/(1+\\beta)$ of Eq 16",
    "output_depth": "depth of the output",
    "gradient_depth": "depth of the gradient",
    "output_below_half": "output's share below half",
}
NORMED, PLAIN = ("scalar", "batch", EXEMPT), ("none",)
GAUSSIANS = "gaussians"
EARLY_STEPS = 10


def over_groups(
    make: Make,
    *,
    norms: tuple[str, ...] = NORMED + PLAIN,
    parts: tuple[str, ...] = BOTH,
    families: tuple[str, ...] = LAYERS,
    named: str = "{}",
    quarters: bool = False,
    of_all: bool = False,
    at_start: bool = False,
) -> Test:
    """Judge a claim on all kinds of network and training; each is a reading.

    Args:
        make: Makes the test of the rows of one kind.
        norms: Normalisations that count.
        parts: Quantities that measure the depth, the paper's first.
        families: Families of networks that count.
        named: Name of the quantity that is judged, of the part.
        quarters: Read the first quarter of a short training as well.
        of_all: The claim is of every network, and holds if it does for each.
        at_start: The start alone is read, which is the same in every training.
    """

    def kinds(both: PredictedAndMeasured) -> list[ReadAs]:
        listed, read = [], groups(both.measured)
        for part in parts:
            started = set()
            for group in read if at_start else [*read, *unread(read)]:
                if group["norm"] not in norms or group["family"] not in families:
                    continue
                start = tuple(v for k, v in group.items() if k not in TRAINING)
                if at_start and start in started:
                    continue
                started.add(start)
                short = group["horizon"] == SHORT
                rows = measured(named.format(part), **group).out_of(whole)
                rows = rows.called(PARTS.get(part, part))
                if group in read and not len(rows(both)):
                    continue
                for share in (1.0, 0.25) if quarters and short else (1.0,):
                    name = f"{PARTS.get(part, part)}; {network_name(group)}"
                    name += ", first quarter" if share < 1 else ""
                    test = until(rows, make, share) if quarters else make(rows)
                    test = test if group in read else not_run
                    listed.append(ReadAs(name, WHAT, source_of(group), test))
        return listed

    def test(both: PredictedAndMeasured) -> Judgement:
        listed = kinds(both)
        if not listed:
            return undecided("no such network was read", missing=True)
        if of_all or len(listed) == 1:
            return all_of([renamed(one.test(both), one.name) for one in listed])
        return readings(*listed)(both)

    return test


WHAT = "One measure of the depth, on one kind of network, in one training."
TRAINING = ("horizon", "rate")  # labels that do not change a network at its start


def unread(read: list[dict]) -> list[dict]:
    """Return the trainings on images that the axes hold and that have no rows.

    Decay of norms and the readout at the start are axes at the least depth.
    """
    images = [group for group in read if group["family"] in IMAGES]
    wanted = [
        {**group, "norm": norm, "readout": readout}
        for group in images
        if group["depth"] == min(one["depth"] for one in images)
        for norm in (PLAIN if group["norm"] in PLAIN else ("batch", EXEMPT))
        for readout in READOUTS
    ]
    return [
        one
        for place, one in enumerate(wanted)
        if one not in read and one not in wanted[:place]
    ]


def not_run(both: PredictedAndMeasured) -> Judgement:
    """Judge a training of which there are no rows."""
    return undecided("it was not run", missing=True)


def source_of(group: Group) -> str:
    """Return where the paper has such networks."""
    if (group["family"], group["task"], group["depth"]) == ("layerwise", GAUSSIANS, 10):
        return "figure 1(d): ten layers on Gaussians; it gives no training"
    return "ours: the paper measures no such network"


# Half a percent of all branches.
MORE = above(
    0.005, source="ours", why="readings of 20 updates leave a line by up to 0.004"
)


def late(rows: Select) -> Test:
    """Judge whether the ensemble is deeper at the end than midway."""
    return grown(rows, 0.5)


def at_every_stage(rows: Select) -> Test:
    """Judge whether the ensemble becomes deeper in every quarter of the training."""
    return every(grown(rows), steadily(rows, by=MORE))


def rises(rows: Select) -> Test:
    """Judge whether the depth has a positive slope over the updates."""
    return trend(
        rows,
        over="step",
        slope_in=above(0),
        log_x=False,
        log_y=False,
        name=f"slope of {rows} over the updates",
    )


def deeper_and_deeper(**which: Any) -> Test:
    """Judge networks at all stages of training, and by the slope over all updates."""
    return readings(
        ReadAs(
            "every stage",
            "The ensemble is deeper after each quarter of the training than before.",
            "the words: deeper and deeper",
            over_groups(at_every_stage, **which),
        ),
        ReadAs(
            "slope",
            "The depth rises over training on the whole.",
            "the words: as training progresses",
            over_groups(rises, **which),
        ),
    )


def by_factor(rows: Select) -> Test:
    """Judge whether larger scales make the ensemble deeper."""
    return every(
        ordered(rows.at(factor=a), rows.at(factor=b)) for a, b in pairwise(FACTORS)
    )


def starts_in(region: Region) -> Make:
    """Make the test that a network starts in a region."""
    return lambda rows: inside(mean(rows.at(step=0)), region)


def shallower_than_plain(rows: Select) -> Test:
    """Judge whether a start is shallower than that without normalisation."""
    start = rows.at(step=0)
    return ordered(start, start.at(norm="none"))


def begins_shallower_than_plain(rows: Select) -> Test:
    """Judge the same of each of the first readings."""
    return at_each(
        "step",
        rows,
        lambda at: ordered(at, at.at(norm="none")),
        where=lambda step: step <= EARLY_STEPS,
    )


def starts_mostly_below_half(rows: Select) -> Test:
    """Judge whether more than half of the weight is below half of the depth."""
    shares = rows.quantity == "output_below_half"
    return starts_in(above(0.5) if shares else below(0.5))(rows)


def begins_in(region: Region) -> Make:
    """Make the test that a network is in a region at each of its first readings."""
    return lambda rows: at_each(
        "step",
        rows,
        lambda at: inside(mean(at), region),
        where=lambda step: step <= EARLY_STEPS,
    )


def mediated(rows: Select) -> Test:
    """Judge whether resetting the scales undoes more than half of the change."""
    part = rows.quantity.removeprefix("reset_")
    named = measured("mediated", **rows.labels).out_of(_mediated(part))
    title = f"change of {PARTS[part]} that is undone, less what is left"
    return inside(mean(named.called(title)), above(0))


@cache
def _mediated(part: str) -> Callable[[Rows], Rows]:
    """Return how much more of a change the scales explain than everything else."""

    def among(rows: Rows) -> Rows:
        rows = whole(rows)
        back = rows.where(quantity=f"reset_{part}")
        curve = {(key_of(r), r["step"]): r for r in rows.where(quantity=part)}
        table: list[Row] = []
        for row in back:
            start = curve.get((key_of(row), 0))
            end = curve.get((key_of(row), row["step"]))
            if start is None or end is None:
                continue
            value = abs(end["value"] - row["value"])
            value -= abs(row["value"] - start["value"])
            error = end["error"] + start["error"] + 2 * row["error"]
            table.append(
                {**row, "quantity": "mediated", "value": value, "error": error}
            )
        return Rows(table)

    return among


def key_of(row: Mapping[str, Any]) -> tuple:
    """Return the labels of the run of a row."""
    return (*(row[k] for k in GROUP), row["trial"])


def by_scales(quantity: str) -> Make:
    """Make the test that the law at a measured scale gives the measured depth."""
    margin = our_margin(0.1, "a tenth of all branches, which a figure would show")

    def make(rows: Select) -> Test:
        def test(both: PredictedAndMeasured) -> Judgement:
            gaps = _gaps(both, quantity, rows(both))
            if not len(gaps):
                return undecided("no scale of these networks was measured")
            read, steps = (
                PredictedAndMeasured(both.predicted, gaps),
                gaps.levels("step"),
            )
            gap = measured(rows.quantity).called("depth less that of the law")
            return all_of(
                [
                    inside(mean(gap.at(step=step)), margin)(read)
                    for step in (steps[0], steps[-1])
                ]
            )

        return test

    return make


def _gaps(both: PredictedAndMeasured, quantity: str, rows: Rows) -> Rows:
    """Return depths less those that the law gives at the same reading's scale."""
    law = {(key_of(row), row["step"]): row for row in foretold(both, quantity)}
    return Rows(
        {
            **row,
            "value": row["value"] - law[key_of(row), row["step"]]["value"],
            "error": row["error"] + law[key_of(row), row["step"]]["error"],
        }
        for row in rows
        if (key_of(row), row["step"]) in law
    )


# Of a straight line between two points of the law's grid, in the logarithm of beta.
BETWEEN_POINTS = 2e-3


def exponents(both: PredictedAndMeasured, part: str) -> Rows:
    r"""Return the slope of $\log\beta$ over the log of the factor, for each network.

    At $\beta$ the law of equation 16 has the network's effective depth. There is one
    row for each step from one factor to the next.
    """
    known = laws(both.predicted)
    networks: dict[tuple, dict[float, Mapping[str, Any]]] = {}
    for row in both.among("measured", whole).where(quantity=part):
        networks.setdefault(key_of(row), {})[row["factor"]] = row
    return Rows(
        {
            **by_factor[b],
            "quantity": "exponent",
            "from_factor": a,
            "value": (_log_beta(known, by_factor[b]) - _log_beta(known, by_factor[a]))
            / math.log(b / a),
            "error": 2 * BETWEEN_POINTS / math.log(b / a),
        }
        for by_factor in networks.values()
        for a, b in pairwise(sorted(by_factor))
        if units_of(by_factor[b]) in known
    )


def _log_beta(known: Mapping[int, tuple[np.ndarray, np.ndarray]], row: Row) -> float:
    if row["quantity"].endswith("paper_depth"):  # beta / (1 + beta)
        return math.log(row["value"] / (1 - row["value"]))
    logs, depths = known[units_of(row)]
    return float(np.interp(row["value"], depths, logs))


def follows(region: Region) -> Make:
    """Make the test that the exponent lies in a region at every step of the factor."""

    def make(rows: Select) -> Test:
        def test(both: PredictedAndMeasured) -> Judgement:
            table = exponents(both, rows.quantity).where(**rows.labels)
            if not len(table):
                return undecided("networks were read with one scale alone")
            judged = at_each(
                "from_factor",
                measured("exponent").called("power of the scales in $\\beta$"),
                lambda at: inside(mean(at), region),
            )
            return judged(PredictedAndMeasured(both.predicted, table))

        return test

    return make


def exponent_asides(
    norms: tuple[str, ...], part: str
) -> Callable[[PredictedAndMeasured], dict]:
    """Make asides: the factor on the law's scale when all scales are doubled."""

    def read(both: PredictedAndMeasured) -> dict[str, Number]:
        rows = exponents(both, part).where(from_factor=1.0)
        asides = {}
        for group in groups(both.measured):
            values = 2 ** rows.where(**group).values()
            if group["norm"] in norms and len(values) > 1:
                name = f"beta at doubled scales over its own, {network_name(group)}"
                error = float(values.std(ddof=1)) / len(values) ** 0.5
                asides[name] = Number(float(values.mean()), error)
        return asides

    return read

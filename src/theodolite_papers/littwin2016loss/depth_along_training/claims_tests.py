"""Tests of networks during training, for each kind of network."""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from theodolite.core import (
    Judgement,
    Number,
    PredictedAndMeasured,
    Region,
    Rows,
    Select,
    Test,
    above,
    all_of,
    at_each,
    inside,
    mean,
    measured,
    our_margin,
    renamed,
    undecided,
)

from ..shared.rows import grown, rising
from .figure import GROUP, foretold, groups, laws, units_of, whole

Make = Callable[[Mapping[str, Any], str], Test]

LAYERS, IMAGES = ("layerwise",), ("images",)
OUTPUT, GRADIENT = ("output_depth",), ("gradient_depth",)
NORMED, PLAIN = ("scalar", "batch"), ("none",)


def over_groups(
    make: Make,
    *,
    norms: tuple[str, ...] = NORMED + PLAIN,
    parts: tuple[str, ...] = OUTPUT,
    families: tuple[str, ...] = LAYERS,
) -> Test:
    """Judge every kind of network that has one of these families and norms."""

    def test(both: PredictedAndMeasured) -> Judgement:
        pieces = []
        for group in groups(both.measured):
            if group["norm"] in norms and group["family"] in families:
                kind = f"{group['task']}, {group['norm']}, depth {group['depth']}"
                for part in parts:
                    name = f"{part.replace('_', ' ')}, {kind}"
                    pieces.append(renamed(make(group, part)(both), name))
        return all_of(pieces) if pieces else undecided("no such network was read")

    return test


def depth(group: Mapping[str, Any], part: str) -> Select:
    """Select a quantity of a kind of network, from runs trained to the end."""
    return measured(part, **group).out_of(whole)


def deeper(group: Mapping[str, Any], part: str, *, late: bool = False) -> Test:
    """Judge whether the ensemble is deeper at the end than at the start, or midway."""
    rows = depth(group, part)

    def test(both: PredictedAndMeasured) -> Judgement:
        middle = len(rows(both).levels("stage")) // 2
        return grown(rows, middle if late else 0)(both)

    return test


def deeper_and_deeper(group: Mapping[str, Any], part: str) -> Test:
    """Judge whether the ensemble is deeper at every stage than at the one before."""
    return rising(depth(group, part), "stage")


def by_factor(group: Mapping[str, Any], part: str) -> Test:
    """Judge whether larger scales make the ensemble deeper."""
    return rising(measured(f"scaled_{part}", **group), "factor")


def starts_in(region: Any) -> Make:
    """Make the test that a network starts in a region."""
    return lambda group, part: inside(mean(depth(group, part).at(stage=0)), region)


def begins_in(region: Any, stages: int) -> Make:
    """Make the test that a network is in a region at each of its first stages."""
    return lambda group, part: at_each(
        "stage",
        depth(group, part),
        lambda rows: inside(mean(rows), region),
        where=lambda stage: stage < stages,
    )


def mediated(group: Mapping[str, Any], part: str) -> Test:
    """Judge whether resetting the scales undoes more than half of the change."""
    rows = measured("mediated", **group).out_of(_mediated(part))
    return inside(mean(rows), above(0))


def _mediated(part: str) -> Callable[[Rows], Rows]:
    """Return how much more of a change the scales explain than everything else."""

    def among(rows: Rows) -> Rows:
        rows = whole(rows)
        back = rows.where(quantity=f"reset_{part}")
        last = {_key(row): row["stage"] for row in back}
        mine = rows.where(quantity=part)
        first = {_key(row): row for row in mine.where(stage=0)}
        end = {_key(row): row for row in mine if row["stage"] == last.get(_key(row))}
        return Rows(
            {
                **row,
                "quantity": "mediated",
                "value": abs(end[_key(row)]["value"] - row["value"])
                - abs(row["value"] - first[_key(row)]["value"]),
                "error": end[_key(row)]["error"]
                + first[_key(row)]["error"]
                + 2 * row["error"],
            }
            for row in back
            if _key(row) in end and _key(row) in first
        )

    return among


def _key(row: Mapping[str, Any]) -> tuple:
    return (*(row[k] for k in GROUP), row["trial"])


def by_scales(quantity: str) -> Make:
    """Make the test that the law at a measured scale gives the measured depth."""

    def make(group: Mapping[str, Any], part: str) -> Test:
        def test(both: PredictedAndMeasured) -> Judgement:
            rows = _gaps(both, quantity, depth(group, part)(both))
            if not len(rows):
                return undecided("no scale of these networks was measured")
            gaps = PredictedAndMeasured(both.predicted, rows)
            margin = our_margin(
                0.1, "a tenth of all branches, which a figure would show"
            )
            stages = rows.levels("stage")
            return all_of(
                [
                    inside(mean(measured(part, **group, stage=stage)), margin)(gaps)
                    for stage in (stages[0], stages[-1])
                ]
            )

        return test

    return make


def _gaps(both: PredictedAndMeasured, quantity: str, rows: Rows) -> Rows:
    """Return depths less those that the law gives at the same reading's scale."""
    law = {(_key(row), row["stage"]): row for row in foretold(both, quantity)}
    return Rows(
        {
            **row,
            "value": row["value"] - law[_key(row), row["stage"]]["value"],
            "error": row["error"] + law[_key(row), row["stage"]]["error"],
        }
        for row in rows
        if (_key(row), row["stage"]) in law
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
    for row in both.measured.where(quantity=f"scaled_{part}"):
        key = (*(row[k] for k in GROUP), row["trial"])
        networks.setdefault(key, {})[row["factor"]] = row
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


def _log_beta(
    known: Mapping[int, tuple[np.ndarray, np.ndarray]], row: Mapping[str, Any]
) -> float:
    logs, depths = known[units_of(row)]
    return float(np.interp(row["value"], depths, logs))


def follows(region: Region) -> Make:
    """Make the test that the exponent lies in a region at every step of the factor."""

    def make(group: Mapping[str, Any], part: str) -> Test:
        def test(both: PredictedAndMeasured) -> Judgement:
            rows = exponents(both, part).where(**group)
            if not len(rows):
                return undecided("networks were read with one scale alone")
            exponent = measured("exponent", **group)
            judged = at_each(
                "from_factor", exponent, lambda at: inside(mean(at), region)
            )
            return judged(PredictedAndMeasured(both.predicted, rows))

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
                name = f"{group['task']}, {group['norm']}, depth {group['depth']}"
                error = float(values.std(ddof=1)) / len(values) ** 0.5
                asides[f"beta at doubled scales over its own, {name}"] = Number(
                    float(values.mean()), error
                )
        return asides

    return read

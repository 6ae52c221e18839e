r"""How the $\beta$ that a network's depth amounts to follows a factor on its scales."""

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
    Test,
    all_of,
    inside,
    mean,
    measured,
    undecided,
)

from .claims_tests import Make
from .figure import GROUP, groups, laws, units_of

# Of a straight line between two points of the law's grid, in the logarithm of beta.
BETWEEN_POINTS = 2e-3


def exponents(both: PredictedAndMeasured, part: str) -> Rows:
    r"""Return by network the slope of $\log\beta$ over the logarithm of the factor.

    $\beta$ is that at which the law of equation 16 has the network's effective depth; a
    row a step from one factor to the next.
    """
    known = laws(both.predicted)
    found: dict[tuple, dict[float, Mapping[str, Any]]] = {}
    for row in both.measured.where(quantity=f"scaled_{part}"):
        key = (*(row[k] for k in GROUP), row["trial"])
        found.setdefault(key, {})[row["factor"]] = row
    return Rows(
        {
            **by_factor[b],
            "quantity": "exponent",
            "from_factor": a,
            "value": (_log_beta(known, by_factor[b]) - _log_beta(known, by_factor[a]))
            / math.log(b / a),
            "error": 2 * BETWEEN_POINTS / math.log(b / a),
        }
        for by_factor in found.values()
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
            steps = rows.levels("from_factor")
            there = PredictedAndMeasured(both.predicted, rows)
            return all_of(
                [
                    inside(mean(measured("exponent", **group, from_factor=a)), region)(
                        there
                    )
                    for a in steps
                ]
            )

        return test

    return make


def exponents_told(
    norms: tuple[str, ...], part: str
) -> Callable[[PredictedAndMeasured], dict]:
    """Make asides: by what a doubling of scales multiplies the scale of the law."""

    def told(both: PredictedAndMeasured) -> dict[str, Number]:
        rows = exponents(both, part).where(from_factor=1.0)
        found = {}
        for group in groups(both.measured):
            values = 2 ** rows.where(**group).values()
            if group["norm"] in norms and len(values) > 1:
                name = f"{group['task']}, {group['norm']}, depth {group['depth']}"
                error = float(values.std(ddof=1)) / len(values) ** 0.5
                found[f"beta at doubled scales over its own, {name}"] = Number(
                    float(values.mean()), error
                )
        return found

    return told

"""Claims of figure 1, and on singular values of the map that equation 15 adds."""

import math
from typing import Any

import numpy as np

from theodolite.core import (
    Claim,
    Known,
    PredictedAndMeasured,
    Quantity,
    Read,
    Select,
    Test,
    above,
    against,
    below,
    beyond,
    erratum,
    every,
    inside,
    known,
    mean,
    measured,
    meets,
    near,
    ordered,
    predicted,
)

from ..shared.reads import shifted_up

LAW = below(
    0.02,
    source="ours",
    why="ten times the distance at size 500, a tenth of that between the two laws",
)
EXACT = near(1, 1e-12, source="rounding", why="a pool in double precision")

MISSING = "there are no such rows"


def matrix(quantity: str, shift: float) -> Select:
    """Select numbers of the matrices with or without the identity."""
    return measured(quantity, shift=shift)


def _crossed(both: PredictedAndMeasured) -> Quantity:
    """Return the smallest distance of a share from the law of the other matrix."""
    law = {(r["shift"], r["share"]): r for r in predicted("matrix_share")(both)}
    gaps = [
        abs(row["value"] - law[1 - row["shift"], row["share"]]["value"])
        for row in measured("matrix_share")(both)
    ]
    if not gaps:
        return known("least distance to the other law", math.nan, note=MISSING)
    return known("least distance to the other law", min(gaps), 2e-5)


def _rises(both: PredictedAndMeasured) -> np.ndarray:
    rows = predicted("rise")(both)
    return np.array([rows.where(gain=gain).values() for gain in rows.levels("gain")])


def _least_rise(both: PredictedAndMeasured) -> Quantity:
    return known("least rise of a share at any variance", _rises(both).min(), 2e-5)


def _less_and_less(both: PredictedAndMeasured) -> Quantity:
    steps = np.diff(_rises(both).mean(axis=1))
    return known("change of the mean rise from a variance to the next", steps.max())


def _number(
    both: PredictedAndMeasured, quantity: str, **labels: Any
) -> tuple[float, float]:
    """Return the value and error of the one row of a map; NaN where there is none."""
    rows = measured(quantity, **labels)(both)
    return (rows[0]["value"], rows[0]["error"]) if len(rows) else (math.nan, math.nan)


def _ratio(name: str, top: tuple[float, float], bottom: tuple[float, float]) -> Known:
    """Return the ratio of two numbers, open where one is missing."""
    if math.isnan(top[0]) or math.isnan(bottom[0]):
        return known(name, math.nan, note=MISSING)
    value = top[0] / bottom[0]
    return known(name, value, (top[1] + value * bottom[1]) / bottom[0])


def _ones(name: str) -> Read:
    """Read the fraction of a map's singular values that are 1."""

    def read(both: PredictedAndMeasured) -> Quantity:
        ones, of_all = (
            _number(both, f"skip_{what}", map=name) for what in ("ones", "all")
        )
        return _ratio(f"share of ones, {name.replace('_', ' ')}", ones, of_all)

    return read


def _scaled(end: str, stride: int) -> Test:
    """Judge whether a pool's singular value times its stride is one."""

    def read(both: PredictedAndMeasured) -> Quantity:
        value = _number(both, f"pool_{end}", stride=stride)
        title = f"stride {stride} times its pool's singular value, {end}"
        return _ratio(title, value, (1 / stride, 0.0))

    return inside(read, EXACT)


def _overlapping(both: PredictedAndMeasured) -> Quantity:
    low, high = (_number(both, f"overlapping_{end}") for end in ("least", "most"))
    return _ratio("least over largest, overlapping pool", low, high)


LINEAR_CLAIMS = (
    Claim(
        name="linear-shift",
        place="Figure 1",
        statement="In the linear setting a skip connection shifts the singular values "
        "of a random layer upwards.",
        test=shifted_up(matrix("matrix_share", 0.0), matrix("matrix_share", 1.0)),
        rival="a spectrum that only spreads, its least singular values unmoved",
    ),
    beyond(
        name="linear-law",
        place="Beyond figure 1; section 7, fifth problem",
        statement="Both spectra of figure 1 are known in the limit: the quarter "
        "circle on $[0, 2\\sigma]$, and with the identity the law whose transform "
        "solves $(w-1)(1 - zw^2) = \\sigma^2 w$, on $[\\sqrt{1/12}, \\sqrt{32/9}]$ "
        "for $\\sigma^2 = 1/3$.",
        test=against(
            meets("matrix_share", ("shift", "share"), LAW, relative=False),
            inside(_crossed, above(LAW.high, source="ours", why=LAW.why)),
        ),
        rival="the law of the matrix without the identity",
    ),
    beyond(
        name="rise-at-every-variance",
        place="Beyond figure 1; section 7, fourth problem",
        statement="In the linear limit every share of the spectrum rises whatever the "
        "variance of the weights, and on average by less the greater it is.",
        test=every(inside(_least_rise, above(0)), inside(_less_and_less, below(0))),
        rival="a variance above which the identity lowers some singular values",
        own_rows_only=True,
    ),
    beyond(
        name="lemma-is-silent",
        place="Beyond figure 1; lemma B.4",
        statement="What lifts the least singular value in figure 1 is not lemma B.4, "
        "which asks for a layer of norm below 1: the norm is above, and the least "
        "singular value rises all the same.",
        test=every(
            inside(mean(matrix("high_end", 0.0)), above(1)),
            ordered(matrix("low_end", 0.0), matrix("low_end", 1.0)),
            inside(
                mean(matrix("low_end", 1.0)),
                above(0.2, source="ours", why="two thirds of the limit, 0.289"),
            ),
        ),
        rival="a norm below 1, or a least singular value near zero",
    ),
    erratum(
        name="average-pool-is-no-isometry",
        place="Equation 15, section 6.2",
        statement="An average pool can be rescaled to have all singular values equal "
        "to 1, as the map $I$ that is added to the projection.",
        printed="an average pool, rescaled to have all singular values equal to 1",
        corrected="a $k \\times k$ pool of stride $k$ has the singular value $1/k$ "
        "alone and is rescaled by $k$; pools that overlap have several and cannot be; "
        "and where channels grow, as here from 5 to 20, zeros fill the new ones: 80 "
        "singular values of 320 are 1 and 240 are 0. Details of the blocks of pixels "
        "in the new channels make all 320 equal to 1",
        test=inside(_ones("average"), near(1, 0)),
        corrected_test=every(
            *(_scaled(end, k) for k in (2, 3, 4) for end in ("least", "most")),
            inside(_overlapping, below(1)),
            inside(_ones("average"), near(0.25, 0)),
            inside(_ones("haar"), near(1, 0)),
            inside(_ones("one_detail"), near(1, 0)),
        ),
        rival="320 singular values equal to 1",
        own_rows_only=True,
    ),
)

"""Quantities that claims read from spectra, and from computed signed numbers."""

from typing import Any

import numpy as np

from theodolite.core import (
    PredictedAndMeasured,
    Quantity,
    Read,
    Region,
    Select,
    Test,
    above,
    below,
    each,
    every,
    highest,
    inside,
    known,
    lowest,
    measured,
    ordered,
)

# The mean singular value of each of so many equal shares, the least first.
SHARES = 10


ROUNDED = "sums and products of small matrices in double precision"
AT_MOST_ONE = below(1 + 1e-7, source="rounding", why=ROUNDED)
NOT_NEGATIVE = above(-1e-11, source="rounding", why=ROUNDED)


def never_above(
    *quantities: str, region: Region = AT_MOST_ONE, called: str = "", **labels: Any
) -> Test:
    """Judge whether no measured row of the quantities is above the region."""
    rows = [measured(name, **labels).called(called) for name in quantities]
    return all_of_them(*(inside(highest(one), region) for one in rows))


def never_below(
    *quantities: str, region: Region = NOT_NEGATIVE, called: str = "", **labels: Any
) -> Test:
    """Judge whether no measured row of the quantities is below the region."""
    rows = [measured(name, **labels).called(called) for name in quantities]
    return all_of_them(*(inside(lowest(one), region) for one in rows))


def all_of_them(first: Test, *others: Test) -> Test:
    """Return one test of several, or the only one itself."""
    return every(first, *others) if others else first


def shifted_up(low: Select, high: Select, *, name: str = "") -> Test:
    """Judge whether every share of a spectrum is above that of another, paired.

    Quantile by quantile is the stochastic order of the two distributions.
    """
    return each(
        "share",
        low,
        lambda share: ordered(low.at(share=share), high.at(share=share)),
        least=SHARES,
        name=name,
    )


def most_over(
    bound: Select,
    quantity: Select,
    by: tuple[str, ...],
    *,
    ratio: bool = False,
    least: bool = False,
    name: str = "",
) -> Read:
    """Read the largest of a quantity minus its bound, or divided by it if ``ratio``.

    Partners share the labels ``by``; each row of the quantity has a bound. ``least``
    reads the smallest instead.
    """

    def read(both: PredictedAndMeasured) -> Quantity:
        title = name or f"{quantity} {'over' if ratio else 'less'} {bound}"
        bounds = {tuple(row.get(k) for k in by): row for row in bound(both)}
        keys = [tuple(row.get(k) for k in by) for row in quantity(both)]
        if not keys or not bounds.keys() >= set(keys):
            return known(title, float("nan"), note="rows are missing or lack a partner")
        a, da, b, db = np.array(
            [
                [row["value"], row["error"], bounds[key]["value"], bounds[key]["error"]]
                for row, key in zip(quantity(both), keys, strict=True)
            ]
        ).T
        if ratio and not b.all():
            return known(title, float("nan"), note="a bound is zero")
        values = a / b if ratio else a - b
        errors = (da + abs(values) * db) / abs(b) if ratio else da + db
        sign = -1.0 if least else 1.0
        value = float((sign * values).max())
        return known(title, sign * value, float((sign * values + errors).max()) - value)

    return read

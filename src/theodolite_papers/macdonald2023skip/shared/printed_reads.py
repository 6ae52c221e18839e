"""Printed means and deviations as numbers that a claim can be tested on."""

import math
from dataclasses import replace

from theodolite.core import (
    Known,
    PredictedAndMeasured,
    Read,
    Row,
    Sampled,
    combined,
    known,
)

from .image_config import MODIFIED, ORIGINAL


def sampled_from(row: Row, *, log: bool = False) -> Sampled:
    """Return a printed mean with Student's interval; rounding adds to it."""
    value, slack = row["value"], row["rounding"]
    stderr = row["spread"] / math.sqrt(row["n"] - 1)
    if log:
        slack = -math.log10(1 - slack / value)
        stderr, value = stderr / (value * math.log(10)), math.log10(value)
    where = (
        f"table {row['table']}, rate {row['rate']:g}, {model(row['added_identity'])}"
    )
    return Sampled(
        name=f"{_word(row['quantity'], False)}, {where}",
        value=value,
        slack=slack,
        stderr=stderr,
        freedom=row["n"] - 1,
        networks=row["n"],
    )


def between_models(
    quantity: str, table: int, rate: float, *, log: bool = False
) -> Read:
    """Read the printed mean of the modified network minus that of the original."""

    def read(both: PredictedAndMeasured) -> Sampled:
        cells = [(table, rate, scale) for scale in (MODIFIED, ORIGINAL)]
        title = f"{_word(quantity, log)} of modified less original, table {table}"
        return _difference(both, quantity, cells, f"{title}, rate {rate:g}", log)

    return read


def between_rates(
    quantity: str, table: int, scale: float, rates: tuple[float, float], *, log: bool
) -> Read:
    """Read one model's mean at the first rate minus that at the second."""

    def read(both: PredictedAndMeasured) -> Sampled:
        cells = [(table, rate, scale) for rate in rates]
        title = f"{_word(quantity, log)} at {rates[0]:g} less at {rates[1]:g}"
        title = f"{title}, table {table}, {model(scale)}"
        return _difference(both, quantity, cells, title, log)

    return read


def significance(quantity: str, table: int, rate: float, *, cells: int) -> Read:
    """Read the p-value of equal means of the two models, by Welch, times ``cells``.

    What rounding of the printed numbers leaves open is its error.
    """

    def read(both: PredictedAndMeasured) -> Known:
        gain = between_models(quantity, table, rate)(both)
        assert isinstance(gain, Sampled)
        p = [
            cells * 2 * min(one.p_above(0.0), one.p_below(0.0))
            for one in (replace(gain, slack=0.0), gain)
        ]
        low, high = (min(1.0, value) for value in sorted(p))
        title = f"p of equal {_word(quantity, False)}, table {table}, rate {rate:g}"
        return known(title, (low + high) / 2, (high - low) / 2)

    return read


def homogeneity(
    both: PredictedAndMeasured, quantity: str, table: int, scale: float
) -> float:
    """Return the p-value of equal means of all rows of a table, by Fisher's F."""
    from scipy.special import fdtrc

    rows = both.predicted.where(quantity=quantity, table=table, added_identity=scale)
    means, spreads = rows.values(), rows.values("spread")
    n, groups = rows[0]["n"], len(rows)
    between = n * means.var(ddof=1)
    within = float((spreads**2).mean()) * n / (n - 1)
    return float(fdtrc(groups - 1, groups * (n - 1), between / within))


def model(scale: float) -> str:
    """Name a network by the scale of its added identity."""
    return "modified" if scale else "original"


def _difference(
    both: PredictedAndMeasured,
    quantity: str,
    cells: list[tuple[int, float, float]],
    name: str,
    log: bool,
) -> Sampled:
    rows = both.predicted.where(quantity=quantity)
    parts = [
        sampled_from(rows.only(table=table, rate=rate, added_identity=scale), log=log)
        for table, rate, scale in cells
    ]
    return combined(name, parts, (1.0, -1.0))


def _word(quantity: str, log: bool) -> str:
    return f"{'log10 ' if log else ''}{quantity.replace('_', ' ')}"

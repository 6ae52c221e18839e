"""The numbers of tables 1 to 3, as printed, and tests on them."""

import math
from collections.abc import Callable
from dataclasses import replace

from theodolite.core import (
    Known,
    PredictedAndMeasured,
    Read,
    Row,
    Rows,
    Sampled,
    combined,
    known,
    named_rows,
)

from .image_config import MODIFIED, ORIGINAL, ImageConfig

# Rate; accuracy (percent) and final loss of the original, then of the modified
# network, each mean and standard deviation.
_PRINTED: dict[int, tuple[tuple[float | None, ...], ...]] = {
    1: (
        (0.2, 48.14, 19.95, 1.3883, 0.5503, 62.71, 6.14, 0.9495, 0.2150),
        (0.1, 91.64, 0.24, 0.0032, 0.0002, 91.42, 0.61, 0.0022, 0.0002),
        (0.05, 91.22, 0.25, 0.0043, 0.0003, 91.14, 0.25, 0.0041, 0.0001),
        (0.02, 89.50, 0.32, 0.0112, 0.0004, 88.94, 0.35, 0.0125, 0.0004),
    ),
    2: (
        (0.2, 69.67, 0.58, 0.0150, 0.0005, 70.07, 0.53, 0.0115, 0.0005),
        (0.1, 70.05, 0.43, 0.0147, 0.0004, 70.87, 0.42, 0.0116, 0.0003),
        (0.05, 70.04, 0.48, 0.0145, 0.0003, 70.34, 0.56, 0.0116, 0.0003),
        (0.02, 69.75, 0.56, 0.0145, 0.0003, 70.13, 0.55, 0.0116, 0.0004),
    ),
    3: (
        (0.2, 49.24, 34.75, 1.0285, 0.0066, None, None, None, None),
        (0.1, 74.69, 0.12, 0.9201, 0.0014, 74.99, 0.09, 0.8949, 0.0019),
        (0.05, 74.62, 0.12, 0.8563, 0.0041, 74.84, 0.03, 0.8420, 0.0030),
        (0.02, 73.87, 0.09, 0.8690, 0.0025, 74.00, 0.11, 0.8441, 0.0026),
    ),
}
_TRIALS = {1: 10, 2: 10, 3: 3}
# Appendix C: of ten original networks at this rate, six diverged and were left out.
KEPT = 4
_ROUNDING = {"printed_accuracy": 0.005, "printed_loss": 0.00005}


def printed_rows(*tables: int) -> Rows:
    """Return the cells of tables; ``spread`` is the printed standard deviation.

    ``error`` is the standard error of the mean plus what rounding leaves open. The
    published scripts divide by the number of trials, not by one less.
    """
    return Rows(row for table in tables for row in _cells(table))


def _cells(table: int) -> list[Row]:
    rows: list[Row] = []
    for rate, *numbers in _PRINTED[table]:
        for place, scale in enumerate((ORIGINAL, MODIFIED)):
            for offset, name in enumerate(_ROUNDING):
                mean, spread = numbers[4 * place + 2 * offset :][:2]
                if mean is None or spread is None:
                    continue
                n = KEPT if (table, rate) == (1, 0.2) else _TRIALS[table]
                rounding = _ROUNDING[name]
                labels = {"table": table, "rate": rate, "added_identity": scale}
                labels |= {"spread": spread, "n": n, "rounding": rounding}
                error = spread / math.sqrt(n - 1) + rounding
                rows += named_rows({name: mean}, error, **labels)
    return rows


def predict_table(*tables: int) -> Callable[[ImageConfig], Rows]:
    """Return a function from settings to printed cells and a count of parameters."""

    def predict(config: ImageConfig) -> Rows:
        count = config.plan(ORIGINAL).parameters
        counted = {"quantity": "parameters", "value": count, "error": 0.0}
        return Rows([*printed_rows(*tables), counted])

    return predict


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


def significance(
    quantity: str,
    table: int,
    rate: float,
    *,
    cells: int = 1,
    pooled: bool = False,
    better: bool = False,
    sample: bool = False,
) -> Read:
    """Read the p-value of equal means of the two models, times ``cells``.

    Welch's test, or Student's with ``pooled`` variances; of printed deviations as
    populations', as the published script computes them, or as ``sample``s'. With
    ``better`` only a larger mean of the modified network counts. What rounding of the
    printed numbers leaves open is its error.
    """

    def read(both: PredictedAndMeasured) -> Known:
        gain = between_models(quantity, table, rate)(both)
        assert isinstance(gain, Sampled)
        n = both.predicted.where(quantity=quantity, table=table, rate=rate)[0]["n"]
        if pooled:
            gain = replace(gain, freedom=2 * (n - 1))
        if sample:
            gain = replace(gain, stderr=gain.stderr * math.sqrt((n - 1) / n))
        p = [
            2 * cells * (up if better else min(up, one.p_below(0.0)))
            for one in (replace(gain, slack=0.0), gain)
            for up in [one.p_above(0.0)]
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

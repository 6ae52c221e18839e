"""Tests of how ends depend on starts, and of what networks usually have."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from theodolite.core import (
    ReadAs,
    Region,
    Rows,
    Select,
    Test,
    above,
    below,
    counted,
    difference,
    equivalent,
    inside,
    measured,
    our_margin,
)

from .claims_tests import (
    FOLDED,
    LAST,
    NO_DECAY,
    SHOWN,
    in_families,
    norm,
    of,
    rho_readings,
)

# Ends from starts that differ by a factor of fifty in every layer.
ALIKE = our_margin(
    math.log10(1.5), "starts 6,000,000 apart in ρ then end within a factor of 1.5"
)


SAME_ERRORS = our_margin(0.02, "two samples of a hundred")
OUTPUTS, ERRORS = "outputs", "errors"
_QUANTITIES = {OUTPUTS: "mean_abs_f", ERRORS: "test_error"}


def depends(make: Callable[[str], Test]) -> Test:
    """Judge what training ends with: its norms, sizes of outputs, and errors."""
    return rho_readings(
        make,
        ReadAs(OUTPUTS, "The mean size of $f_n$.", "figures 3 and 9", make(OUTPUTS)),
        ReadAs(
            ERRORS, "The error on new samples.", "figures 1, 6 and 10", make(ERRORS)
        ),
    )


def _end(reading: str, *kind: Any) -> Select:
    if reading in _QUANTITIES:
        return of(_QUANTITIES[reading], *kind)
    return norm(reading, *kind, last=True)


def forgets(condition: str, reading: str) -> Test:
    """Judge whether norms, outputs or errors end alike from all starts."""
    log = reading != ERRORS
    margin = ALIKE if log else SAME_ERRORS

    def make(family: str, condition: str, starts: list[float]) -> list[Test]:
        ends = (
            [_end(reading, family, condition, start) for start in pair]
            for pair in combinations(starts, 2)
        )
        return [equivalent(*pair, margin=margin, log=log) for pair in ends]

    return in_families((condition,), make)


TWICE = "a factor of two between ends is a strong dependence"


def remembers(reading: str) -> Test:
    """Judge whether the largest and the smallest start without decay end far apart.

    Norms end larger from larger starts, outputs of unit layers smaller.
    """
    region = factor(2, TWICE)
    if reading == OUTPUTS:
        region = below(-region.low, source="ours", why=TWICE)
    if reading == ERRORS:
        region = above(SAME_ERRORS.high, source="ours", why=SAME_ERRORS.why)
    end = partial(_end, reading)
    return larger_from_larger(NO_DECAY, region, end, log=reading != ERRORS)


def larger_from_larger(
    conditions: Sequence[str],
    region: Region,
    end: Callable[..., Select],
    *,
    log: bool,
) -> Test:
    """Judge a number from the largest start less that from the smallest."""

    def make(family: str, condition: str, starts: list[float]) -> list[Test]:
        if len(starts) < 2:
            return []
        both = (end(family, condition, starts[k]) for k in (-1, 0))
        return [inside(difference(*both, log=log), region)]

    return in_families(conditions, make)


def as_with_both(conditions: Sequence[str]) -> Test:
    """Judge errors from the smallest start beside those with both, norms and decay."""

    def make(family: str, condition: str, starts: list[float]) -> list[Test]:
        pair = of("test_error", family, condition, starts[0]) if starts else None
        both = measured("test_error", family=family, condition="bn_wd")
        return [inside(difference(pair, both, paired=False), SAME)] if pair else []

    return in_families(conditions, make)


SAME = below(SAME_ERRORS.high, source="ours", why=SAME_ERRORS.why)


def _of_unit_layers(reading: str) -> Callable[[Rows], Rows]:
    """Return the largest output over the norm, and the norm, of each network's end."""

    def among(rows: Rows) -> Rows:
        if reading == LAST:
            stages = rows.where(quantity="last_norm_stage")
            norms = {_run(r): r for r in sorted(stages, key=lambda r: r["epoch"])}
        else:
            name = "folded_rho" if reading == FOLDED else "rho_end"
            norms = {_run(row): row for row in rows.where(quantity=name)}
        folded = {_run(row): row["value"] for row in rows.where(quantity="folded_rho")}
        table = []
        for row in rows.where(quantity="largest_f"):
            key = _run(row)
            if key in norms and key in folded:
                size = norms[key]["value"]
                network = {**row, "trial": f"{row['start']:g}/{row['trial']}"}
                output = row["value"] * folded[key] / size
                table.append({**network, "quantity": "unit_output", "value": output})
                table.append({**network, "quantity": "unit_norm", "value": size})
        return Rows(table)

    return among


def _run(row: Any) -> tuple:
    return tuple(row[k] for k in ("family", "condition", "start", "trial"))


TENFOLD = 10.0  # far below and far above
MOST = above(0.5, source="ours", why="usually: more often than not")


def usually_small(reading: str) -> Test:
    """Judge whether most networks have outputs far below 1 at norms far above."""
    among = _of_unit_layers(reading)

    def make(family: str, condition: str, starts: list[float]) -> list[Test]:
        def share(quantity: str, word: str, test: Callable[[Any], bool]) -> Test:
            labels = {"family": family, "condition": condition}
            rows = measured(quantity, lambda row: row["start"] in starts, **labels)
            title = f"share of networks with {word} ({reading}, {family}, {condition})"
            return inside(counted(rows.out_of(among), test, name=title), MOST)

        return [
            share(
                "unit_output", "outputs below 0.1", lambda r: r["value"] < 1 / TENFOLD
            ),
            share("unit_norm", "a norm above 10", lambda r: r["value"] > TENFOLD),
        ]

    return in_families(SHOWN, make)


def factor(value: float, why: str) -> Region:
    """Return the region above log10 of a factor."""
    return above(math.log10(value), source="ours", why=why)

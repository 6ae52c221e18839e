"""Tests of all networks, condition by condition.

A start from which fewer than two runs are alive is left out, and the largest start is
the largest of those that are left. Kinds and widths of networks, which the captions
leave open, are readings: a condition is decided only if all of them agree.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from theodolite.core import (
    Alive,
    Judgement,
    PredictedAndMeasured,
    Quantity,
    Read,
    ReadAs,
    Region,
    Rows,
    Select,
    Test,
    all_of,
    below,
    difference,
    inside,
    known,
    largest,
    mean,
    measured,
    ordered,
    readings,
    sampled,
    undecided,
)

from .config import CONDITIONS, CONVOLUTIONAL

# Outputs of zero have a loss of 1. A run that does not end a tenth below that has not
# learnt, and none of the captions' starts has a norm near the bound.
ALIVE = Alive(
    by=("family", "condition", "start", "trial"),
    loss="train_loss",
    chance=0.9,
    over="epoch",
    bounds={"rho_end": 1e12},
)
# What the figures show, and of them what has no decay.
SHOWN = ("bn_wd", "bn", "plain")
NORMALISED = SHOWN[:2]
NO_DECAY = ("bn", "plain")
INTERPOLATED = 0.01  # mean squared residual: outputs within a tenth of their labels
Piece = tuple[str, Callable[[Select], Read], Region]  # quantity, how to read it
Make = Callable[[str, str, list[float]], Sequence[Test]]


WORDS = {
    "early_spread": "spread of margins after ten epochs",
    "first_margin": "mean margin after one epoch",
    "folded_rho": "norm with batch norms folded in",
    "largest_f": "largest output of unit layers",
    "late_spread": "spread of margins at the end",
    "mean_abs_f": "mean size of outputs of unit layers",
    "output_margin": "mean margin times the norm",
    "ratio_gap": "distance of the ratio from its limit",
    "rho_end": "norm at the end",
    "rho_start": "norm at the start",
    "test_error": "error on new samples",
    "train_loss": "training loss",
}


def of(quantity: str, family: str, condition: str, start: float) -> Select:
    """Select rows of one condition and start."""
    return measured(quantity, family=family, condition=condition, start=start)


def in_families(conditions: Sequence[str], make: Make) -> Test:
    """Judge pieces of each condition, made for starts that trained.

    Families of networks are readings. A condition of which no family has a piece leaves
    the whole open.
    """

    def test(both: PredictedAndMeasured) -> Judgement:
        starts = _trained(both.measured.where(quantity="alive"))
        judged = []
        for condition in conditions:
            listed = []
            for family in sorted(starts, key=partial(_uncaptioned, condition)):
                trained = starts[family]
                made = make(family, condition, trained.get(condition, []))
                pieces = [piece(both) for piece in made]
                # A family in which this was not measured is no reading.
                if pieces and not any(piece.missing for piece in pieces):
                    listed.append(_family(family, condition, all_of(pieces)))
            if len(listed) > 1:
                judged.append(readings(*listed)(both))
            elif listed:
                judged.append(listed[0].test(both))
            else:
                reason = f"too few networks of condition {condition} trained"
                judged.append(undecided(reason))
        return all_of(judged)

    return test


def _uncaptioned(condition: str, family: str) -> bool:
    """Return whether the captions of a condition have layers of the other kind."""
    return family.endswith(CONVOLUTIONAL) != (condition == "bn")


def _family(name: str, condition: str, judged: Judgement) -> ReadAs:
    """Return one kind and width of networks as a reading of the captions."""
    captions = "figure 6" if condition == "bn" else "figures 1 and 10"
    source = f"caption of {captions}; widths are ours"
    if _uncaptioned(condition, name):
        source = f"ours: {captions} have the other kind of layers"
    what = "Networks of this kind and width."
    return ReadAs(name.replace("_", " "), what, source, lambda both: judged)


def _trained(alive: Rows) -> dict[str, dict[str, list[float]]]:
    """Return the starts from which two runs or more trained, by family, condition."""
    counts: dict[str, dict[str, dict[float, int]]] = {}
    for row in alive:
        by_start = counts.setdefault(row["family"], {}).setdefault(row["condition"], {})
        by_start[row["start"]] = by_start.get(row["start"], 0) + bool(row["value"])
    return {
        family: {
            condition: sorted(start for start, n in by_start.items() if n > 1)
            for condition, by_start in of_family.items()
        }
        for family, of_family in counts.items()
    }


# The three things that the paper calls ρ.
PRODUCT, LAST, FOLDED = "all layers", "last layer", "folded"
_ENDS = {PRODUCT: "rho", LAST: "last_norm", FOLDED: "folded_rho"}


def rho_readings(make: Callable[[str], Test], *more: ReadAs) -> Test:
    """Judge a test for each of the three things that the paper calls ρ, and more."""
    return readings(
        ReadAs(
            PRODUCT,
            "ρ is the product of the Frobenius norms of all layers.",
            "section 2.1; figure 2 is headed Rho from All Layers",
            make(PRODUCT),
        ),
        ReadAs(
            LAST,
            "With batch normalisation ρ is the norm of the last layer.",
            "section 2.3: ρ_k = 1 for all k < L and ρ_L = ρ",
            make(LAST),
        ),
        ReadAs(
            FOLDED,
            "ρ is the product of the norms with batch normalisation folded in, the "
            "only one for which |f| is at most 1.",
            "ours, from section 2.1",
            make(FOLDED),
        ),
        *more,
    )


def norm(reading: str, *kind: Any, last: bool) -> Select:
    """Select a norm at the start or the end; without normalisation all are one."""
    plain = CONDITIONS[kind[1]].norm == "none"
    if plain or reading == PRODUCT:
        return of("rho_end" if last else "rho_start", *kind)
    place = max if last else min

    def edge(rows: Rows) -> Rows:
        epochs = rows.levels("epoch")
        return rows.where(epoch=place(epochs)) if epochs else rows

    rows = of(f"{_ENDS[reading]}_stage", *kind).keeping(edge)
    return rows.called(f"norm ({reading}) at the {'end' if last else 'start'}")


def fall(reading: str, *kind: Any, early: bool = False) -> Read:
    """Read the largest fall of a norm from its highest reading before.

    Readings are spread evenly over training; ``early`` has the first epochs too.
    """
    if early or CONDITIONS[kind[1]].norm == "none":
        return mean(of("rho_fall", *kind).called("largest fall of the norm"))
    name = f"largest fall of the norm ({reading}, from {kind[2]:g})"

    def read(both: PredictedAndMeasured) -> Quantity:
        rows = of(f"{_ENDS[reading]}_stage", *kind)(both)
        falls = []
        for trial in rows.levels("trial"):
            curve = rows.where(trial=trial)
            path = np.array([curve.value(epoch=e) for e in curve.levels("epoch")])
            falls.append(float((1 - path / np.maximum.accumulate(path)).max()))
        if falls and not any(falls):  # none of them fell at all
            note = f"of these {len(falls)} networks"
            return known(name, 0.0, 1e-5, note)
        return sampled(name, falls)

    return read


def each_start(
    conditions: Sequence[str],
    quantity: str,
    region: Region,
    *,
    read: Callable[[Select], Read] = mean,
    log: bool = False,
    smallest_only: bool = False,
) -> Test:
    """Judge whether a number of each start, or of the smallest, is in a region."""

    def make(family: str, condition: str, starts: list[float]) -> list[Test]:
        chosen = (
            of(quantity, family, condition, start)
            for start in (starts[:1] if smallest_only else starts)
        )
        return [inside(read(rows.log10() if log else rows), region) for rows in chosen]

    return in_families(conditions, make)


def interpolating(conditions: Sequence[str], pieces: Sequence[Piece]) -> Test:
    """Judge numbers of all runs that interpolate, of each condition."""

    def fitted(rows: Rows) -> Rows:
        runs = {
            tuple(row[label] for label in ALIVE.by)
            for row in rows.where(quantity="train_loss")
            if row["value"] < INTERPOLATED
        }
        return rows.where(lambda row: tuple(map(row.get, ALIVE.by)) in runs)

    def make(family: str, condition: str, starts: list[float]) -> list[Test]:
        labels: dict[str, Any] = {"family": family, "condition": condition}
        return [
            inside(read(measured(quantity, **labels).out_of(fitted)), region)
            for quantity, read, region in pieces
            if starts
        ]

    return in_families(conditions, make)


def fall_of_small(region: Region) -> Test:
    """Judge the largest fall of the norm from the smallest start of each condition."""

    def judged(reading: str, early: bool = False) -> Test:
        return in_families(
            SHOWN,
            lambda family, condition, starts: [
                inside(fall(reading, family, condition, start, early=early), region)
                for start in starts[:1]
            ],
        )

    return readings(
        ReadAs(
            "all layers, from the first epoch",
            "ρ is the product over all layers; the first epochs count.",
            "figure 2, whose inner panels show them",
            judged(PRODUCT, early=True),
        ),
        ReadAs(
            "spread evenly",
            "ρ is read at eighths of the training, in all its three meanings.",
            "figure 2, whose outer panels show 1,000 epochs",
            rho_readings(judged),
        ),
    )


def large_shrink(reading: str, *, above_rest: bool) -> Test:
    """Judge whether norms end lower from the largest starts, with normalisation.

    With ``above_rest`` only from those above the norm at which small starts end.
    """

    def test(both: PredictedAndMeasured) -> Judgement:
        tried: set[str] = set()
        found: set[str] = set()

        def make(family: str, condition: str, starts: list[float]) -> list[Test]:
            if len(starts) < 2:
                return []
            tried.add(condition)
            large, small = ((family, condition, starts[k]) for k in (-1, 0))
            first = norm(reading, *large, last=False)
            rest = norm(reading, *small, last=True)
            if above_rest and not difference(first, rest, log=True)(both).value > 0:
                return []
            found.add(condition)
            end = norm(reading, *large, last=True)
            name = f"log10 norm lost ({condition}, from {large[2]:g})"
            return [ordered(end, first, log=True, name=name)]

        in_families(NORMALISED, make)(both)
        if not found:
            return undecided("no largest start is above where small ones end")
        # Conditions without a large start are left out, those without runs are not.
        wanted = [c for c in NORMALISED if c in found or c not in tried]
        return in_families(wanted, make)(both)

    return test


def less(low: str, high: str) -> Test:
    """Judge whether one number is less than another from all starts."""

    def make(family: str, condition: str, starts: list[float]) -> list[Test]:
        kinds = [(family, condition, start) for start in starts]
        return [ordered(of(low, *kind), of(high, *kind), log=True) for kind in kinds]

    return in_families(SHOWN, make)


def factor_between(rows: Select) -> Read:
    """Read the logarithm of the largest over the least of some networks."""

    def read(both: PredictedAndMeasured) -> Quantity:
        values = np.array([row["value"] for row in rows(both)], dtype=float)
        name = f"log10 of the largest over the least {rows}"
        if len(values) < 2:
            return known(name, math.nan, note="fewer than two networks trained")
        note = f"of these {len(values)} networks"
        return known(name, float(np.ptp(np.log10(values))), 1e-4, note)

    return read


def wide_diverge(both: PredictedAndMeasured) -> Judgement:
    """Judge whether no run trains that theory predicts to be unstable at its start."""
    pieces = [
        inside(
            largest(
                measured("run_alive", family=row["family"], condition=row["condition"])
            ),
            below(0.5, source="ours", why="1 for a run that trained, else 0"),
        )(both)
        for row in both.predicted.where(quantity="instability")
        if row["value"] > 1
    ]
    if not pieces:
        return undecided("no network is wide enough to be unstable at its rate")
    return all_of(pieces)

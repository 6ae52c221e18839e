"""Theorem 1 and its lemmas: verdicts, and that each could have been another."""

import pytest

from tests.studies.worlds import (
    check_all_turn,
    check_errors,
    check_verdicts,
    check_world,
    const,
    first,
    shift,
)

STUDY = "small_weights"
FAILURES = {}

# Claim, side, quantity, labels, change: a world in which the verdict must turn.
WORLDS = [
    ("one-step-a-unit", "m", "gain", {}, first(shift(1e-6))),
    ("one-step-a-unit", "m", "others_moved", {}, first(shift(1e-6))),
    ("one-step-a-unit", "m", "norm_gap", {}, first(shift(1e-6))),
    ("one-step-a-unit", "m", "inside_moved", {}, first(const(0.0))),
    ("clear-of-caps", "m", "clearance", {}, first(const(0.49))),
    ("clear-of-caps", "p", "length_share", {}, first(const(1.01))),
    ("clear-of-caps", "p", "straight", {}, const(0.8)),
    ("interpolates-exactly", "m", "output_error", {}, first(shift(1e-8))),
    ("norms-shrink", "m", "max_norm", {"case": "basis"}, const(1.0)),
    ("norms-shrink", "m", "max_norm", {"case": "6,4"}, lambda row: 9 / row["units"]),
    ("norms-shrink", "m", "max_bias", {"case": "basis"}, const(1.0)),
    ("norm-limit", "p", "limit", {}, first(lambda row: 1.1 * row["value"])),
    ("norm-limit", "m", "max_norm", {"case": "6,4"}, lambda row: 1.1 * row["value"]),
    ("bracket-under-the-root", "p", "bound", {}, lambda row: 0.5 * row["value"]),
    ("bracket-under-the-root", "m", "max_norm", {}, lambda row: 0.1 * row["value"]),
    ("bracket-under-the-root", "p", "printed", {"case": "6,4"},
     lambda row: 0.75 * row["value"]),
    ("units-not-shortcuts", "m", "max_norm", {"case": "basis"}, const(1.0)),
    ("units-not-shortcuts", "p", "circle", {}, const(0.3)),
    ("labels-repeat", "m", "label_distance", {}, const(0.1)),
    ("labels-repeat", "m", "norm_most", {}, const(1.0)),
    ("labels-repeat", "m", "refused", {}, const(0.0)),
    ("labels-repeat", "m", "error_perturbed", {}, shift(1e-6)),
    ("rounding-grows", "m", "error_open", {"rho": 0.05}, const(1e-9)),
    ("rounding-grows", "m", "error_closed", {}, first(shift(1e-8))),
    ("rounding-grows", "m", "error_open", {},
     lambda row: min(row["value"], 1.0) ** 0.5 if row["rho"] > 0.1 else row["value"]),
]  # fmt: skip


def test_verdicts_at_smoke(smoke_root):
    check_verdicts(smoke_root, STUDY, FAILURES)


def test_rows_carry_their_error(smoke_root):
    check_errors(smoke_root, STUDY)


def test_every_claim_has_a_world():
    check_all_turn(STUDY, WORLDS)


@pytest.mark.parametrize(
    "world", WORLDS, ids=[f"{w[0]}-{w[2]}-{i}" for i, w in enumerate(WORLDS)]
)
def test_each_verdict_turns_in_another_world(world, smoke_root):
    check_world(smoke_root, STUDY, world)

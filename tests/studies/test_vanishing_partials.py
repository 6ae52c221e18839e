"""Lemmas 3 and 4: verdicts, and that each could have been another."""

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

STUDY = "vanishing_partials"
FAILURES = {}

# Claim, side, quantity, labels, change: a world in which the verdict must turn.
WORLDS = [
    ("lemma-3-whole-unit", "m", "no_unit", {}, first(shift(1e-6))),
    ("lemma-3-whole-unit", "m", "chain", {}, first(const(0.0))),
    ("lemma-3-every-unit", "m", "part", {}, first(shift(1e-6))),
    ("lemma-3-every-unit", "m", "whole", {}, const(0.0)),
    ("lemma-4-translation", "m", "shift_loss", {}, first(shift(1e-6))),
    ("lemma-4-translation", "m", "shift_partial", {}, first(shift(1e-6))),
    ("lemma-4-translation", "m", "swapped", {"n": 1}, first(const(0.0))),
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

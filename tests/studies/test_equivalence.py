"""1-shortcut and plain networks: verdicts, and that each could be another."""

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

STUDY = "equivalence"
FAILURES = {"equivalent-with-activations"}

# Claim, side, quantity, labels, change: a world in which the verdict must turn.
WORLDS = [
    ("plain-at-identity", "m", "identity_gap", {"setting": "linear"},
     first(shift(1e-6))),
    ("plain-at-identity", "m", "identity_gap", {"setting": "tanh after"},
     first(const(0.0))),
    ("orthogonal-hessian-similar", "m", "matrix_gap", {"setting": "linear"},
     first(shift(1e-6))),
    ("orthogonal-hessian-similar", "m", "spectrum_gap", {"setting": "linear"},
     first(shift(1e-6))),
    ("orthogonal-hessian-similar", "m", "unrotated_gap", {"setting": "linear"},
     first(const(0.0))),
    ("orthogonal-trains-the-same", "m", "training_gap",
     {"kind": "one_shortcut_turned"}, first(shift(1e-6))),
    ("orthogonal-trains-the-same", "m", "training_gap", {"kind": "one_shortcut"},
     first(const(0.0))),
    ("orthogonal-trains-the-same", "m", "training_gap", {"kind": "xavier"},
     first(const(0.0))),
    ("equivalent-with-activations", "m", "spectrum_gap", {}, const(1e-12)),
    ("equivalence-ends", "m", "spectrum_gap", {"setting": "linear"},
     first(shift(1e-6))),
    ("equivalence-ends", "m", "spectrum_gap", {"setting": "relu before"},
     first(const(0.0))),
    ("equivalence-ends", "m", "xavier_ratio", {}, const(50.0)),
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

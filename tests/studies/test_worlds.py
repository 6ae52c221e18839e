"""Studies of exact statements: their verdicts, and worlds in which each turns."""

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

# Claims of a study that fail; all others hold.
FAILURES = {
    "equivalence": {"equivalent-with-activations"},
    "vanishing_partials": set(),
}

# Claim, side, quantity, labels, change: a world in which the verdict must turn.
WORLDS = {
    "equivalence": [
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
    ],
    "vanishing_partials": [
        ("lemma-3-whole-unit", "m", "no_unit", {}, first(shift(1e-6))),
        ("lemma-3-whole-unit", "m", "chain", {}, first(const(0.0))),
        ("lemma-3-every-unit", "m", "part", {}, first(shift(1e-6))),
        ("lemma-3-every-unit", "m", "whole", {}, const(0.0)),
        ("lemma-4-translation", "m", "shift_loss", {}, first(shift(1e-6))),
        ("lemma-4-translation", "m", "shift_partial", {}, first(shift(1e-6))),
        ("lemma-4-translation", "m", "swapped", {"n": 1}, first(const(0.0))),
    ],
}  # fmt: skip


@pytest.mark.parametrize("study", WORLDS)
def test_verdicts_at_smoke(study, smoke_root):
    check_verdicts(smoke_root, study, FAILURES[study])


@pytest.mark.parametrize("study", WORLDS)
def test_rows_carry_their_error(study, smoke_root):
    check_errors(smoke_root, study)


@pytest.mark.parametrize("study", WORLDS)
def test_every_claim_has_a_world(study):
    check_all_turn(study, WORLDS[study])


@pytest.mark.parametrize(
    ("study", "world"),
    [
        pytest.param(study, world, id=f"{study}-{world[0]}-{world[2]}-{i}")
        for study, worlds in WORLDS.items()
        for i, world in enumerate(worlds)
    ],
)
def test_each_verdict_turns_in_another_world(study, world, smoke_root):
    check_world(smoke_root, study, world)

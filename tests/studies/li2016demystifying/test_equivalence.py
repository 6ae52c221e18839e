"""Shortcut 1 and none: what is said of them, and worlds in which each verdict turns."""

import pytest

from tests.studies.worlds import (
    check_all_turn,
    check_errors,
    check_verdicts,
    check_world,
    claim_of,
    const,
    first,
    rows_of,
    shift,
)
from theodolite.core import ConfigError, Roads
from theodolite.studies.li2016demystifying.equivalence.config import Config

STUDY = "equivalence"
VERDICTS = {}
LINEAR, RELU = {"setting": "linear"}, {"setting": "relu before"}
# Claim, side, quantity, labels, change: a world in which the verdict must turn.
WORLDS = [
    ("plain-at-identity", "m", "identity_gap", LINEAR, first(shift(1e-6))),
    ("plain-at-identity", "m", "identity_gap", {"setting": "tanh after"},
     first(const(0.0))),
    ("orthogonal-hessian-similar", "m", "matrix_gap", LINEAR, first(shift(1e-6))),
    ("orthogonal-hessian-similar", "m", "unrotated_gap", LINEAR, first(const(0.0))),
    ("orthogonal-trains-the-same", "m", "training_gap",
     {"kind": "one_shortcut_turned"}, first(shift(1e-6))),
    ("orthogonal-trains-the-same", "m", "training_gap", {"kind": "one_shortcut"},
     first(const(0.0))),
    ("orthogonal-trains-the-same", "m", "training_gap", {"kind": "xavier"},
     first(const(0.0))),
    ("equivalence-ends", "m", "ratio", {}, const(30.0)),
    ("equivalence-ends", "m", "ratio", RELU, const(30.0)),
    ("equivalence-ends", "m", "ratio", {**LINEAR, "kind": "xavier"}, const(30.0)),
    ("equivalence-ends", "m", "spectrum_gap", LINEAR, first(shift(1e-6))),
    ("equivalence-ends", "m", "spectrum_gap", RELU, first(const(0.0))),
]  # fmt: skip


def test_verdicts_at_smoke(smoke_root):
    check_verdicts(smoke_root, STUDY, VERDICTS)


def test_rows_carry_their_error(smoke_root):
    check_errors(smoke_root, STUDY)


def test_every_claim_has_a_world():
    check_all_turn(STUDY, WORLDS)


@pytest.mark.parametrize(
    "world", WORLDS, ids=[f"{w[0]}-{i}" for i, w in enumerate(WORLDS)]
)
def test_each_verdict_turns_in_another_world(world, smoke_root):
    check_world(smoke_root, STUDY, world)


def test_one_network_decides_nothing_about_condition_numbers(smoke_root):
    study, roads = rows_of(smoke_root, STUDY)
    alone = Roads(roads.predicted, roads.measured.where(trial=0))
    assert claim_of(study, "equivalence-ends").rule(alone).outcome == "UNDECIDED"


def test_condition_numbers_meet_their_closed_form(smoke_root):
    _, roads = rows_of(smoke_root, STUDY)
    found = roads.measured.where(
        quantity="ratio", setting="linear", kind="one_shortcut"
    )
    assert len(found) == len(roads.predicted)
    for row in found:
        closed = roads.predicted.value(depth=row["depth"], trial=row["trial"])
        assert row["value"] == pytest.approx(closed, rel=1e-8)


def test_what_is_ours_is_out_of_the_papers_count(smoke_root):
    study, _ = rows_of(smoke_root, STUDY)
    assert {str(claim.kind) for claim in study.claims} == {"beyond"}


def test_two_depths_are_too_few_for_growth():
    with pytest.raises(ConfigError, match="at least three"):
        Config(depths=(2, 4))

"""ReLU networks: verdicts on the exact Hessian, and that each could be another."""

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

STUDY = "relu_exact"
FAILURES = {"relu-condition-invariant"}

# Claim, side, quantity, labels, change: a world in which the verdict must turn.
WORLDS = [
    ("relu-decomposition", "m", "whole", {}, first(shift(1e-6))),
    ("relu-decomposition", "m", "gauss_newton", {}, first(shift(1e-6))),
    ("relu-decomposition", "m", "without_residual", {}, first(const(0.0))),
    ("relu-decomposition", "m", "open_gates", {}, first(const(0.0))),
    ("relu-within-layers", "m", "within", {}, first(shift(1e-6))),
    ("relu-within-layers", "m", "within_tanh", {}, const(0.0)),
    ("relu-limit-at-zero", "m", "limit_gap", {}, const(1e-4)),
    ("relu-limit-at-zero", "m", "limit_gap", {}, lambda row: 100 * row["value"]),
    ("relu-distribution-invariant", "p", "mean", {"units": 16}, shift(0.1)),
    ("relu-distribution-invariant", "p", "mean_square", {"units": 16}, shift(0.1)),
    ("relu-condition-invariant", "p", "condition", {},
     lambda row: 3.0 + 0.01 * (row["draw"] % 7)),
    ("relu-extremes-spread", "p", "largest", {},
     lambda row: 1.0 + 0.01 * (row["draw"] % 7)),
    ("relu-extremes-spread", "p", "condition", {},
     lambda row: 3.0 + 0.01 * (row["draw"] % 7)),
    ("relu-extremes-spread", "p", "ceiling", {}, const(0.5)),
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

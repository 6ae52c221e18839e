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
    "relu_exact": {"relu-condition-invariant"},
    "small_weights": set(),
}

# Claim, side, quantity, labels, change: a world in which the verdict must turn.
WORLDS = {
    "relu_exact": [
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
    ],
    "small_weights": [
        ("one-step-a-unit", "m", "gain", {}, first(shift(1e-6))),
        ("one-step-a-unit", "m", "others_moved", {}, first(shift(1e-6))),
        ("one-step-a-unit", "m", "norm_gap", {}, first(shift(1e-6))),
        ("one-step-a-unit", "m", "inside_moved", {}, first(const(0.0))),
        ("clear-of-caps", "m", "clearance", {}, first(const(0.49))),
        ("clear-of-caps", "p", "length_share", {}, first(const(1.01))),
        ("clear-of-caps", "p", "straight", {}, const(0.8)),
        ("interpolates-exactly", "m", "output_error", {}, first(shift(1e-8))),
        ("norms-shrink", "m", "max_norm", {"case": "basis"}, const(1.0)),
        ("norms-shrink", "m", "max_norm", {"case": "6,4"},
         lambda row: 9 / row["units"]),
        ("norms-shrink", "m", "max_bias", {"case": "basis"}, const(1.0)),
        ("norm-limit", "p", "limit", {}, first(lambda row: 1.1 * row["value"])),
        ("norm-limit", "m", "max_norm", {"case": "6,4"},
         lambda row: 1.1 * row["value"]),
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
         lambda row: row["value"] if row["rho"] <= 0.1
         else min(row["value"], 1.0) ** 0.5),
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

"""Figures 5 and 6: verdicts, that each could have been another, reference values."""

import numpy as np
import pytest
from theodolite.studies.li2016demystifying.along_training_levels import gaps, levels
from theodolite.studies.li2016demystifying.along_training_states import (
    States,
    onto_levels,
)
from theodolite.studies.li2016demystifying.whitened import whitened

from tests.studies.worlds import altered, check_world, const, first, rows_of, shift
from theodolite.core import Blueprint, Rows, condition_of
from theodolite.networks import draw_weights
from theodolite.studies.li2016demystifying.along_training import KINDS
from theodolite.theory import linear_hessian, moments
from theodolite.training import AtLosses, Probe, train_grid

# SMOKE is shallow, where curves cross that do not at depth 16.
OUTCOMES = {
    "better-at-every-loss": "UNDECIDED",
    "better-at-another-depth": "UNDECIDED",
    "condition-numbers-meet": "FAILS",
    "index-always-smaller": "UNDECIDED",
}


@pytest.fixture(scope="module")
def smoke(smoke_root):
    return rows_of(smoke_root, "along_training")


def claim_named(study, name):
    return next(claim for claim in study.claims if claim.name == name)


def test_verdicts_at_smoke(smoke):
    study, predicted, measured = smoke
    found = {c.name: c.check(predicted, measured).outcome for c in study.claims}
    assert found == {c.name: OUTCOMES.get(c.name, "HOLDS") for c in study.claims}


def nearly(value):
    return lambda row: value * (1 + 1e-4 * row["trial"])


TWO, ORTHOGONAL = {"kind": "two_shortcut"}, {"kind": "orthogonal"}
# Claim, side, quantity, labels, change: a world in which the verdict must turn.
WORLDS = [
    ("better-at-every-loss", "m", "ratio", TWO, nearly(1.0)),
    ("better-at-every-loss", "m", "ratio", TWO, nearly(1e90)),
    ("better-at-another-depth", "m", "ratio", {**TWO, "depth": 4}, nearly(1.0)),
    ("better-most-at-large-loss", "m", "ratio", {**TWO, "fraction": 0.6}, nearly(1e3)),
    ("condition-numbers-meet", "m", "ratio", {"task": "levels"}, nearly(100.0)),
    ("ratio-diverges", "m", "ratio", TWO, const(100.0)),
    ("ratio-diverges", "m", "ratio", ORTHOGONAL, const(100.0)),
    ("ratio-diverges", "m", "optimum_rank", {}, first(shift(1.0))),
    ("ratio-diverges", "m", "optimum_small", {}, first(const(0.1))),
    ("one-shortcut-like-orthogonal", "m", "ratio",
     {"kind": "one_shortcut", "fraction": 0.6}, lambda row: 4 * row["value"]),
    ("one-shortcut-like-orthogonal", "m", "ratio", {}, nearly(100.0)),
    ("index-always-smaller", "m", "index", TWO, nearly(0.2)),
    # Two networks and many looks: only a huge gap is sure.
    ("index-always-smaller", "m", "index", {**TWO, "fraction": 0.6}, nearly(60.0)),
    ("index-starts-at-half", "p", "index", {}, first(const(0.4))),
    ("index-starts-at-half", "m", "first_index", {"depth": 2}, const(0.6)),
    ("index-starts-at-half", "m", "index", {**TWO, "step": 0}, const(0.4)),
    ("index-drops-first", "m", "index", {**TWO, "task": "levels"}, const(0.5)),
    ("index-drops-first", "m", "index", {**TWO, "fraction": 0.003}, const(0.1)),
    ("gradient-peaks-as-index-drops", "m", "gradient", {"task": "run"},
     lambda row: row["step"]),
    ("gradient-peaks-as-index-drops", "m", "gradient", {"task": "run"},
     lambda row: -row["step"]),
    ("towards-negative-curvature", "m", "curvature", {"task": "run"}, const(1.0)),
    ("towards-negative-curvature", "m", "gradient", {"task": "run"},
     lambda row: row["step"]),
]  # fmt: skip


@pytest.mark.parametrize(
    "world", WORLDS, ids=[f"{w[0]}-{i}" for i, w in enumerate(WORLDS)]
)
def test_each_verdict_turns_in_another_world(world, smoke_root):
    check_world(smoke_root, "along_training", world)


def test_single_runs_that_cross_are_counted(smoke):
    study, predicted, measured = smoke
    check = claim_named(study, "better-at-every-loss").check
    name = "2-shortcut runs above their orthogonal twin at some loss"
    assert check(predicted, measured).numbers[name] == 2
    below = altered(measured, "ratio", nearly(1.0), **TWO)
    assert check(predicted, below).numbers[name] == 0
    one = altered(below, "ratio", const(1e9), **TWO, trial=1, fraction=0.2)
    assert check(predicted, one).numbers[name] == 1


@pytest.mark.parametrize(
    "name",
    ["better-at-every-loss", "better-at-another-depth", "index-always-smaller",
     "better-most-at-large-loss", "index-starts-at-half", "index-drops-first",
     "one-shortcut-like-orthogonal"],
)  # fmt: skip
def test_one_network_decides_nothing(name, smoke):
    study, predicted, measured = smoke
    verdict = claim_named(study, name).check(predicted, measured.where(trial=0))
    assert verdict.outcome == "UNDECIDED"


def test_moments_meet_double_backward_along_training(smoke):
    _, _, measured = smoke
    gaps = measured.where(quantity="moments_gap")
    assert {row["kind"] for row in gaps} == set(KINDS)
    assert len(gaps) > 20
    assert gaps.values().max() < 1e-10


def test_the_first_network_is_measured_and_others_are_not(smoke):
    _, _, measured = smoke
    starts = measured.where(task="levels", quantity="largest", step=0)
    for row in starts:
        road = "double backward" if row["trial"] == 0 else "second moments"
        assert row["method"] == f"dense, {road}"


def test_every_row_carries_its_error(smoke):
    _, predicted, measured = smoke
    for row in [*predicted, *measured]:
        assert row.get("error") is not None, row


def test_runs_are_paired_by_seed_and_half_of_them_suffice():
    rows = Rows(
        {"task": "levels", "quantity": "ratio", "kind": kind, "depth": 4,
         "trial": trial, "fraction": fraction, "loss": 1.0, "value": value}
        for kind, trial, fraction, value in (
            ("two_shortcut", 0, 0.5, 1.0), ("two_shortcut", 1, 0.5, 10.0),
            ("two_shortcut", 2, 0.5, 5.0), ("two_shortcut", 2, 0.1, 5.0),
            ("orthogonal", 1, 0.5, 1000.0), ("orthogonal", 0, 0.5, 100.0),
        )
    )  # fmt: skip
    assert list(levels(rows, "ratio", "two_shortcut", 4)) == [0.5]
    ((loss, gap),) = gaps(rows, "ratio", 4, "orthogonal").values()
    assert (loss, gap.mean, gap.std, gap.n) == (1.0, 2.0, 0.0, 2)


class TestInterpolation:
    def rows(self, **values):
        losses = (4.0, 2.0, 1.0)
        return [
            {"quantity": name, "loss": loss, "value": value, "error": 0.0}
            for name, column in values.items()
            for loss, value in zip(losses, column, strict=True)
        ]

    def test_is_linear_in_the_loss(self):
        found = onto_levels(self.rows(index=[0.5, 0.4, 0.2]), {0.9: 3.0, 0.1: 1.0})
        assert [row["value"] for row in found] == pytest.approx([0.45, 0.2])
        assert [row["error"] for row in found] == pytest.approx([0.05, 0.0])
        assert [row["fraction"] for row in found] == [0.9, 0.1]

    def test_leaves_out_what_a_run_did_not_reach(self):
        assert onto_levels(self.rows(index=[1, 2, 3]), {0.9: 5.0, 0.1: 0.5}) == []

    def test_divides_after_interpolating(self):
        rows = self.rows(largest=[8.0, 4.0, 2.0], small=[1.0, 3.0, 1.0])
        found = onto_levels(rows, {0.5: 3.0})
        ratio = next(row for row in found if row["quantity"] == "ratio")
        assert ratio["value"] == pytest.approx(6.0 / 2.0)


class TestReferenceValues:
    """Ratios at the first step below a loss, computed independently."""

    @pytest.mark.parametrize(
        ("kind", "rate", "seed", "wanted"),
        [("two_shortcut", 0.05, 0, [1171, 6038]),
         ("two_shortcut", 0.05, 1, [390.3, 4730]),
         ("orthogonal", 0.01, 0, [254.6, 713]),
         ("orthogonal", 0.01, 1, [254.0, 682])],
    )  # fmt: skip
    def test_depth_12(self, kind, rate, seed, wanted):
        data = whitened("mnist5k", 10)
        plan = Blueprint(width=10, depth=12, **KINDS[kind])
        states = States(plan, moments(*data), by_network=False)
        grid = train_grid(
            plan,
            data,
            {"seed": [seed], "lr": [rate]},
            steps=700,
            probes=[Probe("state", states, AtLosses([0.40, 0.37]))],
            jobs=0,
        )
        found = (grid.probed(f"state/{name}").values() for name in ("largest", "small"))
        assert np.divide(*found) == pytest.approx(wanted, rel=2e-3)

    def test_index_of_shallow_plain_networks(self):
        data = moments(*whitened("mnist5k", 10))
        for depth, index in ((2, 0.275), (4, 0.4125)):
            plan = Blueprint(width=10, depth=depth, **KINDS["orthogonal"])
            matrix = linear_hessian(plan, draw_weights(plan, seed=0), data)
            assert np.mean(np.linalg.eigvalsh(matrix) < 0) == pytest.approx(index)

    def test_ratio_at_the_start(self):
        data = moments(*whitened("mnist5k", 10))
        plan = Blueprint(width=10, depth=12, **KINDS["two_shortcut"])
        matrix = linear_hessian(plan, draw_weights(plan, seed=0), data)
        found = condition_of(np.linalg.eigvalsh(matrix)).ratio
        assert found == pytest.approx(1.47, abs=0.02)

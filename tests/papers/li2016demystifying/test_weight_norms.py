"""Figure 3: verdicts and counterfactuals."""

import numpy as np
import pytest

from tests.studies.counterfactuals import (
    WITH_MNIST,
    check_reproduced,
    claim_of,
    const,
    first,
    refused,
    rows_of,
    scale,
    shift,
    study_tests,
)
from tests.studies.numbers import check_numbers
from theodolite.core import PredictedAndMeasured, Rows, ShortcutBlueprint
from theodolite.networks import initial_weights
from theodolite.theory import linear_gradient, moments
from theodolite.training import AtSteps, Probe, train_grid
from theodolite_papers.li2016demystifying.shared.whitened import whitened
from theodolite_papers.li2016demystifying.weight_norms.config import Config
from theodolite_papers.li2016demystifying.weight_norms.figure import along, at_best
from theodolite_papers.li2016demystifying.weight_norms.measure import mean_norm
from theodolite_papers.li2016demystifying.weight_norms.predict import predict

STUDY = "weight_norms"
# Three networks of 200 steps, at depths up to 16, leave some of them open.
VERDICTS = {
    "norms-fall-at-best-rates": "UNDECIDED",
    "early-growth-is-depth-free": "UNDECIDED",
    "linear-optimum-is-singular": ("FAILS", "HOLDS"),
}


def nearly(value):
    return lambda row: value * (1 + 0.01 * row["trial"])


# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("norms-fall-with-depth", "m", "norm", {"network": "relu", "depth": 16}, scale(2)),
    ("norms-fall-with-depth", "m", "norm", {"network": "linear", "step": 200},
     nearly(2.0)),
    ("norms-fall-at-best-rates", "m", "norm", {"network": "relu", "depth": 16},
     scale(9)),
    ("norms-fall-during-training", "m", "norm",
     {"network": "linear", "depth": 16, "step": 100}, scale(2.0)),
    ("norms-fall-during-training", "m", "norm", {}, nearly(2.0)),
    ("training-ends-around-zero", "m", "norm", {"network": "linear", "depth": 16},
     scale(1.5)),
    ("early-growth-is-depth-free", "m", "norm", {"network": "linear", "depth": 8},
     scale(2.0)),
    ("early-growth-is-depth-free", "p", "early_norm", {}, scale(1.5)),
    ("linear-optimum-is-singular", "p", "rank", {}, shift(1.0)),
    ("linear-optimum-is-singular", "m", "optimum_unit", {}, first(const(0.5))),
    ("linear-optimum-is-singular", "m", "optimum_excess", {}, first(shift(0.1))),
]  # fmt: skip


ALONE = ("norms-fall-with-depth", "norms-fall-during-training",
         "training-ends-around-zero", "early-growth-is-depth-free")  # fmt: skip


class TestStudy(study_tests(STUDY, COUNTERFACTUALS, VERDICTS, alone=ALONE)):
    def test_rows_carry_their_error(self, smoke_root):
        """But for those of runs that diverged."""
        study, both = rows_of(smoke_root, STUDY)
        check_numbers(study, both, f"li2016demystifying/{STUDY}")
        for row in [*both.predicted, *both.measured]:
            assert row.get("error") is not None or row.get("status") == "diverged", row


test_what_cannot_be_run_is_refused = refused(
    STUDY, ({"depths": (2, 3, 4)}, "even ones")
)


def ruling(name, predicted, measured, study):
    return claim_of(study, name).rule(PredictedAndMeasured(predicted, measured))


def test_the_best_rate_has_others_on_both_sides(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    best = at_best(both.measured)
    assert len(best) == 18  # two networks, three depths, three seeds
    assert not any(row["edge"] for row in best)


@pytest.mark.parametrize("side", ["above", "below"])
def test_a_best_rate_on_the_edge_decides_nothing(side, smoke_root):
    """Twelve best rates were once the largest tried, and decided all the same."""
    study, both = rows_of(smoke_root, STUDY)
    rates = {row["lr"] for row in at_best(both.measured)}
    within = (
        (lambda row: row.get("lr", 0) <= min(rates))
        if side == "above"
        else (lambda row: row.get("lr", 9) >= min(rates))
    )
    cut = both.measured.where(within)
    assert any(row["edge"] for row in at_best(cut))
    found = ruling("norms-fall-at-best-rates", both.predicted, cut, study)
    assert found.outcome == "UNDECIDED"
    assert "edge of what was tried" in found.judged.because


def test_a_rate_that_loses_a_run_is_not_used(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    (common,) = along(both.measured.where(network="relu")).levels("lr")
    lost = Rows(
        {**row, "value": None}
        if row["quantity"] == "final_loss" and row["lr"] == common and row["depth"] == 8
        else row
        for row in both.measured
    )
    assert along(lost.where(network="relu")).levels("lr") == [common / 2]
    best = at_best(lost).where(network="relu", depth=8)
    assert common not in best.levels("lr")


def test_early_law_is_that_of_descent():
    """The law, beside descent from 64 seeds close to zero."""
    config = Config(dataset="digits", rates=(0.1,), steps=20, depths=(2, 4, 6))
    data = moments(*whitened("digits", 10))
    plan = ShortcutBlueprint(width=10, depth=8, init_scale=1e-4)
    squares = []
    for seed in range(64):
        weights = initial_weights(plan, seed=seed)
        for _ in range(20):
            weights = weights - 0.1 * linear_gradient(plan, weights, data)
        squares.append(np.mean(np.sum(weights**2, axis=(1, 2))))
    law = predict(config).value(quantity="early_norm", lr=0.1, step=20)
    # The study starts a hundred times further from zero.
    found = 100 * np.sqrt(np.mean(squares))
    spread = np.std(squares) / np.mean(squares) / 8 / 2
    assert abs(found / law - 1) < 4 * spread
    rival = law * np.sqrt(2)  # growth of one matrix without the other
    assert abs(found / rival - 1) > 4 * spread


@WITH_MNIST
def test_a_cell_of_the_committed_run_is_reproduced():
    check_reproduced(STUDY, {"network": "linear", "depth": 4}, trial=1, lr=0.4)


class TestReferenceValues:
    """Losses of gradient descent on the 5,000 digits, computed independently."""

    def test_two_shortcut(self):
        grid = train_grid(
            ShortcutBlueprint(width=10, depth=16),
            whitened("mnist5k", 10),
            {"lr": [0.1]},
            steps=1000,
            record=AtSteps([0, 10, 100]),
            probes=[Probe("norm", mean_norm, AtSteps([1000]))],
            jobs=0,
        )
        wanted = [5.1778549759, 5.1515344655, 0.3932945458, 0.3381818165]
        assert grid.losses()[1] == pytest.approx(wanted, abs=2e-9)
        assert grid.probed("norm").values() == pytest.approx([1.494247], abs=1e-6)

    @pytest.mark.parametrize(
        ("settings", "loss"),
        [({"init": "small"}, 0.3394706267),
         ({"skip": False, "init": "orthogonal"}, 0.3460086262),
         ({"skip": False, "init": "xavier"}, 0.4061505511)]
    )  # fmt: skip
    def test_others(self, settings, loss):
        plan = ShortcutBlueprint(width=10, depth=16, shortcut=1, **settings)
        data = whitened("mnist5k", 10)
        grid = train_grid(plan, data, {"lr": [0.02]}, steps=1000, jobs=0)
        assert grid.final_loss == pytest.approx([loss], abs=2e-9)


@pytest.mark.parametrize(
    ("law", "wanted"),
    [
        (lambda depth: depth**-0.5, "HOLDS"),
        (lambda depth: 1 + 4.0 * depth**-1.5, "FAILS"),
    ],
    ids=["a power", "levels off"],
)
def test_norms_that_fall_as_a_power_end_around_zero(law, wanted, smoke_root):
    """A power neither slackens nor quickens, and theorem 1 allows no more than one."""
    study, _ = rows_of(smoke_root, STUDY)
    rows = Rows(
        {"quantity": "norm", "network": network, "depth": depth, "trial": trial,
         "lr": 0.1, "step": 9, "error": 0.0,
         "value": law(depth) * (1 + 0.01 * np.cos(5 * trial + depth))}
        for network in ("linear", "relu")
        for depth in (4, 8, 16, 32)
        for trial in range(6)
    )  # fmt: skip
    found = ruling("training-ends-around-zero", Rows(), rows, study)
    assert found.outcome == wanted

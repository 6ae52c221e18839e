"""Figure 3: verdicts, that each could have been another, and reference values."""

import numpy as np
import pytest
from theodolite.studies.li2016demystifying.whitened import whitened

from tests.studies.worlds import (
    check_world,
    const,
    first,
    rows_of,
    shift,
)
from theodolite.core import Blueprint, ConfigError, Rows
from theodolite.networks import draw_weights
from theodolite.studies.li2016demystifying.weight_norms import (
    Config,
    mean_norm,
    predict,
)
from theodolite.theory import linear_gradient, moments
from theodolite.training import AtSteps, Probe, train_grid


@pytest.fixture(scope="module")
def smoke(smoke_root):
    return rows_of(smoke_root, "weight_norms")


def claim_named(study, name):
    return next(claim for claim in study.claims if claim.name == name)


def test_all_hold_at_smoke(smoke):
    study, predicted, measured = smoke
    for claim in study.claims:
        assert claim.check(predicted, measured).outcome == "HOLDS", claim.name


def times(factor):
    return lambda row: row["value"] * factor


# Claim, side, quantity, labels, change: a world in which the verdict must turn.
WORLDS = [
    ("norms-fall-with-depth", "m", "norm", {"network": "relu", "depth": 16}, times(2)),
    ("norms-fall-with-depth", "m", "norm", {"network": "linear", "step": 200},
     lambda row: 2 + 0.01 * row["trial"]),
    ("norms-fall-during-training", "m", "norm",
     {"network": "linear", "depth": 16, "step": 1}, times(1.5)),
    ("norms-fall-during-training", "m", "norm", {},
     lambda row: 2 + 0.01 * row["trial"]),
    ("early-growth-is-depth-free", "m", "norm", {"network": "linear", "depth": 8},
     times(1.3)),
    ("early-growth-is-depth-free", "p", "early_norm", {}, times(1.3)),
    ("norms-vanish", "m", "norm", {"network": "linear", "depth": 16}, times(1.25)),
    ("norms-vanish", "m", "norm", {"network": "relu", "depth": 4}, times(1.4)),
    ("linear-optimum-is-singular", "p", "rank", {}, shift(1.0)),
    ("linear-optimum-is-singular", "m", "optimum_unit", {}, first(const(0.5))),
    ("linear-optimum-is-singular", "m", "optimum_excess", {}, first(shift(0.1))),
]  # fmt: skip


@pytest.mark.parametrize(
    "world", WORLDS, ids=[f"{w[0]}-{i}" for i, w in enumerate(WORLDS)]
)
def test_each_verdict_turns_in_another_world(world, smoke_root):
    check_world(smoke_root, "weight_norms", world)


@pytest.mark.parametrize(
    "name", ["norms-fall-with-depth", "norms-fall-during-training", "norms-vanish"]
)
def test_one_network_decides_nothing(name, smoke):
    study, predicted, measured = smoke
    verdict = claim_named(study, name).check(predicted, measured.where(trial=0))
    assert verdict.outcome == "UNDECIDED"


def test_a_rate_that_loses_a_run_is_not_used(smoke):
    study, predicted, measured = smoke
    lost = Rows(
        {**row, "value": None}
        if row["quantity"] == "final_loss" and row["lr"] == 0.4 and row["trial"] == 0
        else row
        for row in measured
    )
    for rows, rate in ((measured, 0.4), (lost, 0.2)):
        figure = study.drawings[0].draw(predicted, rows)
        for panel in figure.axes:
            assert f"rate {rate}" in panel.get_title() + panel.get_title("left")
    ends = claim_named(study, "norms-fall-with-depth")
    assert ends.check(predicted, lost).outcome == "HOLDS"


def test_every_row_carries_its_error(smoke):
    _, predicted, measured = smoke
    for row in [*predicted, *measured]:
        assert row.get("error") is not None, row


def test_early_law_is_that_of_descent():
    """The law, beside descent from 64 seeds close to zero."""
    config = Config(dataset="digits", rates=(0.1,), steps=20, depths=(2, 4, 6))
    data = moments(*whitened("digits", 10))
    plan = Blueprint(width=10, depth=8, init_scale=1e-4)
    squares = []
    for seed in range(64):
        weights = draw_weights(plan, seed=seed)
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


def test_depths_that_cut_units_are_refused():
    with pytest.raises(ConfigError, match="even ones"):
        Config(depths=(2, 3, 4))


class TestReferenceValues:
    """Losses of gradient descent on the 5,000 digits, computed independently."""

    def test_two_shortcut(self):
        grid = train_grid(
            Blueprint(width=10, depth=16),
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
         ({"skip": False, "init": "xavier"}, 0.4061505511)],
    )  # fmt: skip
    def test_others(self, settings, loss):
        plan = Blueprint(width=10, depth=16, shortcut=1, **settings)
        data = whitened("mnist5k", 10)
        grid = train_grid(plan, data, {"lr": [0.02]}, steps=1000, jobs=0)
        assert grid.final_loss == pytest.approx([loss], abs=2e-9)

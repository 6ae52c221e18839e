"""Figure 7: verdicts and counterfactuals."""

import os
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from tests.papers.li2016demystifying.committed_counterfactuals import (
    CommittedChecks,
    changed,
    committed,
    const,
    legend,
    moved,
    outcome,
    power,
    times,
)
from tests.studies.counterfactuals import check_reproduced, rows_of
from theodolite.core import PredictedAndMeasured, Rows
from theodolite.studies import find
from theodolite_papers.li2016demystifying.shared.final_losses.config import inputs
from theodolite_papers.li2016demystifying.shared.final_losses.figure import DIVERGES
from theodolite_papers.li2016demystifying.shared.optima import least_loss

STUDY = "final_losses_linear"
TWO, XAVIER, ORTHOGONAL, ONE, THREE = (
    {"network": name}
    for name in (
        "two_shortcut", "xavier", "orthogonal", "one_shortcut", "three_shortcut"
    )
)  # fmt: skip
EXCESS, ERROR, OWN, MEAN, ESCAPE = (
    ("excess", "value"),
    ("excess", "error"),
    ("excess", "own_rate"),
    ("mean_excess", "value"),
    ("escape", "value"),
)
# Best rates that the seed moves much, except those of 2-shortcut networks.
STEADY = [
    (OWN, TWO, lambda row: 0.001 * row["trial"]),
    *(
        (OWN, rival, lambda row: row["trial"] % 3)
        for rival in (XAVIER, ORTHOGONAL, THREE)
    ),
]
# Claim, outcome, and what is changed in the committed rows: a counterfactual with it.
COUNTERFACTUALS = [
    ("two-shortcut-near-optimal", "FAILS",
     [(EXCESS, {**TWO, "depth": 96}, const(0.02))]),
    ("two-shortcut-near-optimal", "UNDECIDED", [(EXCESS, XAVIER, const(1e-5))]),
    ("two-shortcut-lowest", "FAILS",
     [(EXCESS, THREE, const(1e-9)), (ERROR, THREE, const(0.0))]),
    ("two-shortcut-lowest", "UNDECIDED",
     [(EXCESS, ORTHOGONAL, lambda row: 10.0 ** (-4 * (row["trial"] % 5)))]),
    ("orthogonal-worsens", "FAILS", [(EXCESS, ORTHOGONAL, power(1e-2, -1))]),
    ("orthogonal-worsens", "FAILS", [(EXCESS, ONE, power(1e-3, -1))]),
    ("xavier-fails", "FAILS", [(EXCESS, XAVIER, power(1e-1, -1))]),
    ("xavier-any-rate", "FAILS",
     [(MEAN, {**XAVIER, "depth": 96}, lambda row: 10.0 ** (1 + row["rate"]))]),
    ("xavier-any-rate", "UNDECIDED", [(MEAN, {**XAVIER, "depth": 4}, const(0.1))]),
    ("two-shortcut-higher-rates", "FAILS", [(OWN, XAVIER, moved(4))]),
    ("two-shortcut-higher-rates", "UNDECIDED", [(MEAN, XAVIER, const(0.1))]),
    ("two-shortcut-higher-rates", "UNDECIDED",
     [(OWN, THREE, lambda row: row["own_rate"] + row["trial"] % 2 * 1.9)]),
    ("two-shortcut-rate-stays", "FAILS",
     [(OWN, TWO, lambda row: -1.5 * np.log10(row["depth"]))]),
    ("two-shortcut-rate-stays", "UNDECIDED", [(OWN, ORTHOGONAL, const(-1.0))]),
    ("one-shortcut-like-orthogonal", "FAILS", [(EXCESS, ONE, times(0.01))]),
    ("one-shortcut-like-orthogonal", "FAILS", [(OWN, ONE, moved(1))]),
    ("one-shortcut-like-orthogonal", "UNDECIDED",
     [(EXCESS, TWO, lambda row: 5e-4 * 1.01 ** row["trial"])]),
    ("three-shortcut-stuck", "FAILS",
     [(ESCAPE, THREE, const(1.0)), (("escape", "error"), THREE, const(0.0))]),
    ("three-shortcut-stuck", "UNDECIDED",
     [(ESCAPE, TWO, const(30.0)),
      (ESCAPE, THREE, lambda row: 9.0 ** (row["trial"] % 4))]),
    ("two-shortcut-more-stable", "HOLDS",
     [(EXCESS, TWO, lambda row: 1e-4 * 1.01 ** row["trial"]), *STEADY]),
    ("two-shortcut-more-stable", "FAILS",
     [(OWN, TWO, lambda row: row["own_rate"] + row["trial"] % 2 * 3.0),
      (EXCESS, TWO, lambda row: 30.0 ** (row["trial"] % 2) * (9 + row["trial"])),
      (("mean_excess", "diverged"), TWO, lambda row: row["rate"] > -3.5)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def both():
    return committed(STUDY)


class TestStudy(CommittedChecks):
    study = STUDY
    verdicts: ClassVar = {"two-shortcut-more-stable": "UNDECIDED"}
    beyond: ClassVar = {
        "one-shortcut-like-orthogonal",
        "orthogonal-worsens",
        "two-shortcut-rate-stays",
    }
    any_rate = "xavier-any-rate"
    without_rates: ClassVar = {"three-shortcut-stuck"}
    cases = COUNTERFACTUALS


def test_runs_that_both_stay_say_nothing_of_escape(both):
    """Where no network leaves, neither is known to be slower."""
    stays = PredictedAndMeasured(
        both.predicted, Rows({**row, "left": False} for row in both.measured)
    )
    assert outcome(STUDY, "three-shortcut-stuck", stays) == "UNDECIDED"


def test_a_step_of_the_rates_tried_is_no_order(both):
    """All networks agree on one step: more of them would not make the rates finer."""
    near = [(OWN, {}, lambda row: 0.1 if row["network"] == "two_shortcut" else 0.0)]
    judged = outcome(STUDY, "two-shortcut-higher-rates", changed(both, near))
    assert judged == "UNDECIDED"
    far = [(OWN, {}, lambda row: 0.3 if row["network"] == "two_shortcut" else 0.0)]
    assert outcome(STUDY, "two-shortcut-higher-rates", changed(both, far)) == "HOLDS"


def test_a_single_depth_does_not_refute_an_order_on_average(both):
    here = {**THREE, "depth": 48}
    lower = [(EXCESS, here, const(1e-9)), (ERROR, here, const(0.0))]
    assert outcome(STUDY, "two-shortcut-lowest", changed(both, lower)) == "HOLDS"


def test_a_seed_that_diverges_at_every_rate_leaves_its_order_open(both):
    lost = {**THREE, "depth": 48, "trial": 3}
    gone = [
        (("excess", name), lost, lambda row: None)
        for name in ("value", "own_rate", "own_error")
    ]
    for name in ("two-shortcut-lowest", "two-shortcut-higher-rates"):
        assert outcome(STUDY, name, changed(both, gone)) == "UNDECIDED"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("two-shortcut-near-optimal", "two_shortcut"), ("xavier-fails", "xavier")],
)
def test_a_loss_that_overflows_leaves_its_share_open(name, kind, both):
    lost = {"network": kind, "depth": 96, "trial": 3}
    gone = [(("excess", part), lost, lambda row: None) for part in ("value", "error")]
    assert outcome(STUDY, name, changed(both, gone)) == "UNDECIDED"


def test_the_caption_is_judged_at_its_own_depth(smoke_root):
    """A run without depth 96 has nothing to say on it."""
    _, own = rows_of(smoke_root, STUDY)
    assert outcome(STUDY, "xavier-any-rate", own) == "NOT RUN"
    assert outcome(STUDY, "two-shortcut-lowest", own) != "FAILS"


def test_least_squares_meets_the_closed_form():
    """What is measured above is fitted to samples; theory has it from moments."""
    study = find(STUDY).study
    smoke = study.presets["smoke"]
    predicted = study.predict(smoke).value(quantity="optimal_loss")
    assert least_loss(*inputs(smoke)) == pytest.approx(predicted, rel=1e-12)


def test_committed_rows_have_their_own_optimum(both):
    study = find(STUDY).study
    own = study.predict(study.presets["smoke"]).value(quantity="optimal_loss")
    label = study.compare(both)[0]
    assert label["predicted"] == both.predicted.value(quantity="optimal_loss") != own


def test_drawings_come_from_tables(both):
    networks = {"Xavier", "orthogonal", "1-shortcut", "2-shortcut", "3-shortcut"}
    marks = ("hollow: no rate is best", DIVERGES)
    for drawing, mark in zip(find(STUDY).study.drawings, marks, strict=True):
        assert set(legend(drawing, both)) == {*networks, "outputs zero", mark}


def test_settings_that_were_not_committed_have_no_rows():
    study = find(STUDY).study
    paper, cell = study.presets["paper"], {"network": "xavier", "depth": 4}
    assert study.committed.run.of_cell(paper, cell)
    assert not study.committed.run.of_cell(replace(paper, steps=10), cell)


@pytest.mark.skipif(
    not os.path.isdir(os.path.join(os.environ.get("THEODOLITE_DATA", ""), "mnist")),
    reason="THEODOLITE_DATA names no folder with mnist in it",
)
def test_a_cell_of_the_committed_run_is_reproduced():
    # No rate of this cell is so large that rounding grows along the way.
    check_reproduced(STUDY, {"network": "xavier", "depth": 4})

"""Norms on a schedule: what is asked of them, and counterfactuals."""

import math

import pytest

from tests.studies.counterfactuals import const, refused, rows_of, study_tests
from theodolite.core import Rows
from theodolite_papers.beyond.scheduled_norm.config import (
    METHODS,
    STARTS,
    TASKS,
    Config,
)
from theodolite_papers.beyond.scheduled_norm.figure import chosen

STUDY = "scheduled_norm"
DECAY, GROWN, HELD, BARE = ({"method": name} for name in METHODS)
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("grown-errs-no-more", "m", "held_error", GROWN, const(1.0)),
    ("grown-has-wider-margins", "m", "mean_margin", GROWN, const(1e-9)),
    ("grown-forgets-its-start", "m", "disagreement", GROWN, const(1.0)),
    ("bare-errs-no-more", "m", "held_error", BARE, const(0.0)),
    ("bare-has-wider-margins", "m", "mean_margin", BARE, const(1.0)),
    ("bare-forgets-its-start", "m", "disagreement", BARE, const(0.0)),
    ("growth-beats-holding", "m", "held_error", HELD, const(1.0)),
    ("decay-keeps-the-start", "m", "margin_gap", DECAY, const(0.0)),
]


# Two splits decide nothing.
TestStudy = study_tests(
    STUDY,
    COUNTERFACTUALS,
    {case[0]: "UNDECIDED" for case in COUNTERFACTUALS},
    copies={case[0]: 3 for case in COUNTERFACTUALS},
)
test_what_cannot_be_run_is_refused = refused(
    STUDY, *(({name: 0}, f"{name} is 0: pass 1 or more") for name in ("width", "steps"))
)


def test_all_is_measured_of_every_method_and_start(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    for task in TASKS:
        for method in METHODS:
            labels = {"task": task, "method": method}
            found = both.measured.where(quantity="held_error", **labels)
            assert {row["start"] for row in found} == set(STARTS)
            assert all(0 <= value <= 1 for value in found.values())
            assert both.measured.where(quantity="disagreement", **labels)


def test_norms_in_training_follow_the_growth_of_two_layers(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    for row in both.predicted.where(quantity="course"):
        met = both.measured.where(quantity="course", share=row["share"]).values()
        assert len(met) == 2 * len(TASKS)
        assert met == pytest.approx([row["value"]] * len(met), rel=1e-5)


def run(setting, error, loss, trial=0):
    labels = {"task": "t", "method": "m", "trial": trial, "setting": setting}
    return [
        {"quantity": "choice_error", **labels, "value": error},
        {"quantity": "choice_loss", **labels, "value": loss},
        {"quantity": "held_error", **labels, "value": 0.0},
    ]


def test_each_split_chooses_by_its_own_error_then_loss():
    rows = Rows(
        [
            *run(0, 0.2, 0.1),
            *run(1, 0.1, 0.9),
            *run(2, 0.1, 0.8),
            *run(3, 0.0, math.nan),
            *run(0, 0.1, 0.5, trial=1),
            *run(1, 0.3, 0.4, trial=1),
            {"quantity": "course", "value": 1.0},
        ]
    )
    kept = chosen(rows).where(quantity="held_error")
    assert [(row["trial"], row["setting"]) for row in kept] == [(0, 3), (1, 0)]
    assert len(chosen(rows).where(quantity="course")) == 1


def test_settings_are_rates_with_every_decay_or_norm():
    config = Config()
    assert len(config.settings("decay", 2)) == len(config.settings("bare", 10)) == 6
    assert config.settings("bare", 10)[0] == (0.003, 400.0)
    assert config.settings("grown", 2) == config.settings("held", 2)

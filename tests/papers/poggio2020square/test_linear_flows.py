"""Linear classifiers: verdicts and counterfactuals."""

import pytest

from tests.studies.counterfactuals import (
    check_verdicts,
    const,
    first,
    rows_of,
    scale,
    shift,
    study_tests,
)
from theodolite.core import ConfigError
from theodolite_papers.poggio2020square.linear_flows.config import Config

STUDY = "linear_flows"
ERRATA = (
    "speeds-of-a-linear-network",
    "one-step-expands",
    "contributions-are-positive",
    "sum-is-not-each",
    "margins-become-equal",
)
RIDGE = {"loss": "square", "decay": 0.1}
EXPONENTIAL = {"loss": "exponential", "decay": 0.1}
OPEN = {"shape": "wide", "loss": "square", "decay": 0.0}
FIXED = {"shape": "tall"}
NONE, RESTED = {"decay": 0.0}, {"decay": 0.1}
OPPOSITE, TARGET = {"place": "opposite"}, {"place": "target"}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("speeds-of-a-linear-network", "m", "printed_loss_rate", {}, const(-1.0)),
    ("speeds-of-a-linear-network", "m", "norm_speed", {}, first(scale(2.0))),
    ("speeds-of-a-linear-network", "m", "direction_speed", {}, first(shift(0.1))),
    ("speeds-of-a-linear-network", "m", "loss_rate", {}, first(const(1.0))),
    ("independent-with-decay", "m", "spread", RIDGE, first(const(0.1))),
    ("independent-with-decay", "m", "rest_gap", RIDGE, first(const(0.1))),
    ("independent-with-decay", "m", "spread", EXPONENTIAL, first(const(0.1))),
    ("dependent-without-decay", "m", "spread", OPEN, scale(1e-5)),
    ("data-can-decide", "m", "spread", FIXED, first(const(0.1))),
    ("data-can-decide", "m", "rest_gap", FIXED, first(const(0.1))),
    ("small-weights-least-norm", "m", "plain_norm", {}, first(scale(1.01))),
    ("small-weights-least-norm", "m", "plain_loss", {}, first(const(0.1))),
    ("descent-meets-linear-flows", "m", "end_norm", {}, first(scale(1.01))),
    ("one-step-expands", "m", "expansion", OPPOSITE, const(0.9)),
    ("one-step-expands", "m", "expansion", TARGET, first(const(1.1))),
    ("one-step-expands", "m", "fixed_gap", {}, first(const(0.1))),
    ("contributions-are-positive", "m", "alpha", {}, const(1.0)),
    ("contributions-are-positive", "m", "residual", {}, first(shift(0.1))),
    ("sum-is-not-each", "m", "each_gap", {}, const(0.0)),
    ("sum-is-not-each", "m", "sum_gap", {}, first(const(0.1))),
    ("rest-of-single-samples", "m", "sample_residual", NONE, first(const(0.1))),
    ("rest-of-single-samples", "m", "sample_step", NONE, first(const(0.1))),
    ("rest-of-single-samples", "m", "sample_residual", RESTED, const(0.0)),
    ("rest-of-single-samples", "m", "sample_step", RESTED, first(const(0.0))),
    ("flow-of-the-exponential-loss", "m", "deep_norm_speed", {}, first(scale(2.0))),
    ("flow-of-the-exponential-loss", "m", "deep_velocity", {}, first(shift(0.1))),
    ("margins-become-equal", "m", "margin", {}, const(0.5)),
    ("margins-become-equal", "m", "leaving", {}, first(const(0.1))),
]  # fmt: skip


def test_verdicts_at_smoke(smoke_root):
    # Three datasets do not fix a mean over them; those of QUICK do.
    wanted = {"dependent-without-decay": "UNDECIDED"}
    wanted |= dict.fromkeys(ERRATA, ("FAILS", "HOLDS"))
    check_verdicts(smoke_root, STUDY, wanted)


TestStudy = study_tests(STUDY, COUNTERFACTUALS)


@pytest.mark.parametrize(
    ("decay", "wanted"), [(0.5, (0.5, 0.5, 0.0)), (0.1, (0.375, 0.375, -0.25))]
)
def test_residuals_of_three_points_are_those_of_the_reference(
    decay, wanted, smoke_root
):
    _, both = rows_of(smoke_root, STUDY)
    for road in (both.predicted, both.measured):
        residuals = road.where(quantity="residual", decay=decay).values()
        assert list(residuals) == pytest.approx(wanted, abs=1e-9)


def test_one_step_expands_by_its_length(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    for place, factor in (("opposite", 1.1), ("target", 0.9)):
        for value in both.measured.where(quantity="expansion", place=place).values():
            assert value == pytest.approx(factor, abs=1e-12)


def test_rates_that_do_not_halve_are_refused():
    with pytest.raises(ConfigError, match="do not halve"):
        Config(rates=(0.1, 0.03))

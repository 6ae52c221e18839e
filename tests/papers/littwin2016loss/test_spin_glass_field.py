"""Eqs 5, 6, 26 to 29: verdicts and counterfactuals."""

from tests.studies.counterfactuals import (
    claim_of,
    const,
    refused,
    rows_of,
    scale,
    shift,
    study_tests,
)
from theodolite.core import PredictedAndMeasured
from theodolite_papers.littwin2016loss.spin_glass_field.config import Config

STUDY = "spin_glass_field"
PURE, MIXED = {"mixture": "three"}, {"mixture": "two-four"}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("pure-field", "m", "variance", PURE, scale(1.4)),
    ("pure-field", "m", "centre", PURE, shift(0.4)),
    ("pure-field", "m", "variance_off", PURE, const(1.0)),
    ("variance-free-of-mixture", "m", "variance", MIXED, scale(0.6)),
    ("variance-free-of-mixture", "p", "variance", MIXED, scale(1.4)),
    ("variance-free-of-mixture", "m", "centre", MIXED, shift(-0.4)),
    ("variance-free-of-mixture", "m", "variance_off", MIXED, const(1.0)),
    ("one-factor-short", "m", "slope_square", PURE, scale(0.7)),
    ("one-factor-short", "m", "bend_square", MIXED, scale(0.7)),
    ("one-factor-short", "m", "printed_variance", MIXED, scale(0.7)),
    ("single-order-no-spread", "p", "spread", PURE, const(1e-6)),
    ("single-order-no-spread", "m", "euler_gap", PURE, const(1e-6)),
    ("single-order-no-spread", "p", "spread", MIXED, const(0.0)),
    ("radial-variance", "m", "radial_square", MIXED, scale(1.4)),
    ("radial-variance", "m", "euler_gap", MIXED, const(0.0)),
    ("covariance-by-overlap", "m", "covariance", MIXED, shift(0.3)),
    ("covariance-by-overlap", "p", "covariance", PURE, shift(0.3)),
    ("covariance-by-overlap", "m", "covariance", PURE, const(1.0)),
]


TestStudy = study_tests(
    STUDY, COUNTERFACTUALS, {"one-factor-short": ("FAILS", "HOLDS")}
)


def test_one_trial_decides_nothing(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    alone = PredictedAndMeasured(both.predicted, both.measured.where(trial=0))
    assert claim_of(study, "pure-field").rule(alone).outcome == "UNDECIDED"


test_what_cannot_be_sampled_is_refused = refused(
    Config,
    ({"widths": (2,)}, "two tangent directions need 3 or more"),
    ({"widths": (7,)}, "full tensors are made up to 6"),
    ({"widths": ()}, "widths ()"),
    ({"draws": 1}, "1 draws at 24 points"),
)

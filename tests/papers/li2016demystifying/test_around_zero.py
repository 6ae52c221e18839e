"""Around theorem 2: verdicts and counterfactuals."""

import numpy as np
import pytest

from tests.studies.counterfactuals import (
    claim_of,
    const,
    first,
    rows_of,
    shift,
    study_tests,
)
from theodolite.core import PredictedAndMeasured, Rows, ShortcutBlueprint
from theodolite_papers.li2016demystifying.around_zero.config import PRESETS, dataset
from theodolite_papers.li2016demystifying.around_zero.measure import hessian

STUDY = "around_zero"
REFUTED = ("FAILS", "HOLDS")
# What is printed, and for an erratum what is right; all others hold.
VERDICTS = dict.fromkeys(
    ("biases-flatten", "biases-couple-units", "relu-half-space-moments",
     "relu-has-no-curvature", "zero-is-a-saddle"), REFUTED
)  # fmt: skip
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("stationary-order", "m", "order", {"n": 3}, first(shift(-1.1))),
    ("stationary-order", "m", "order", {"n": 5}, first(shift(-1.1))),
    ("biases-flatten", "m", "flat", {}, const(0.0)),
    ("biases-flatten", "m", "flat", {"mid": "tanh"}, first(shift(1.0))),
    ("biases-flatten", "m", "flat", {"mid": "relu"}, first(shift(1.0))),
    ("biases-flatten", "m", "bias_form", {}, first(shift(1e-6))),
    ("biases-flatten", "m", "bias_theorem", {}, first(const(0.0))),
    ("biases-couple-units", "m", "off_pattern", {}, const(0.0)),
    ("biases-couple-units", "m", "fixed_form", {}, first(shift(1e-6))),
    ("biases-couple-units", "m", "zero_form", {}, first(shift(1e-6))),
    ("biases-couple-units", "m", "slope", {}, const(0.0)),
    ("biases-couple-units", "m", "fixed_largest", {}, const(1.0)),
    ("relu-half-space-moments", "m", "printed", {}, const(0.0)),
    ("relu-half-space-moments", "m", "printed", {}, first(const(0.0))),
    ("relu-half-space-moments", "m", "half_space", {}, first(shift(0.1))),
    ("relu-has-no-curvature", "p", "curvature", {}, const(1.0)),
    ("relu-has-no-curvature", "p", "scaled", {}, first(shift(1e-3))),
    ("relu-has-no-curvature", "p", "slope", {}, first(shift(1e-3))),
    ("zero-is-a-saddle", "m", ("lower", "upper"), {"n": 2},
     lambda row: abs(row["value"])),
    ("zero-is-a-saddle", "m", "lower", {"n": 4}, first(lambda row: -row["value"])),
    ("zero-is-a-saddle", "m", "upper", {}, first(lambda row: -row["value"])),
]  # fmt: skip


TestStudy = study_tests(STUDY, COUNTERFACTUALS, VERDICTS)


def test_a_refuted_statement_and_its_correction_are_one_claim(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    errata = [claim for claim in study.claims if claim.kind == "erratum"]
    assert {claim.name for claim in errata} == set(VERDICTS)
    assert all(claim.rule(both).confirmed for claim in errata)


@pytest.mark.parametrize(
    ("name", "quantity"),
    [("stationary-order", "order"), ("zero-is-a-saddle", "lower"),
     ("relu-half-space-moments", "printed")]
)  # fmt: skip
def test_vague_rows_decide_nothing(name, quantity, smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    vague = Rows(
        {**row, "error": 10.0} if row["quantity"] == quantity else row
        for row in both.measured
    )
    found = claim_of(study, name).rule(PredictedAndMeasured(both.predicted, vague))
    assert found.outcome == "UNDECIDED"


def test_at_exactly_zero_automatic_differentiation_sees_no_relu():
    """Why ReLU is measured at small weights: the framework's slope at 0 is 0."""
    config = PRESETS["smoke"]
    plan = ShortcutBlueprint(width=config.width, depth=2, mid="relu", init="zero")
    assert not hessian(config, 0, plan)[0].any()


def test_the_constants_of_a_bias_are_no_parameters():
    config = PRESETS["smoke"]
    plan = ShortcutBlueprint(width=4, depth=2, mid="tanh", bias=True, init="zero")
    assert hessian(config, 0, plan, biases="zero")[0].shape == (32, 32)
    assert hessian(config, 0, plan)[0].shape == (36, 36)


def test_constant_biases_tilt_the_loss_at_zero():
    """The gradient of a last matrix is the mean error times what its bias lets by."""
    config = PRESETS["smoke"]
    plan = ShortcutBlueprint(width=4, depth=2, mid="relu", bias=True, init="zero")
    gradient = hessian(config, 0, plan, biases="drawn")[2].gradient
    x, y = dataset(config, 0)
    last = gradient.reshape(2, 4, 4)[1]
    assert np.linalg.matrix_rank(last, tol=1e-12) == 1
    np.testing.assert_allclose(
        last @ last.T / (last**2).sum(),
        np.outer(*2 * [(x - y).mean(0)]) / ((x - y).mean(0) ** 2).sum(),
        rtol=1e-10,
        atol=1e-12,
    )

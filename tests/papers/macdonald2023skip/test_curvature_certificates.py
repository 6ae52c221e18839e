"""Certified curvature and regularity: verdicts, and counterfactuals."""

from dataclasses import replace

import numpy as np
import pytest

from tests.studies.counterfactuals import const, first, scale, shift, study_tests
from theodolite import theory
from theodolite_papers.macdonald2023skip.curvature_certificates.combine_systems import (
    LENGTH,
    behind_norm,
    climb,
    highest_bends,
    known_losses,
)
from theodolite_papers.macdonald2023skip.curvature_certificates.config import (
    PRESETS,
    instance,
)

STUDY = "curvature_certificates"
ERRATA = (
    "any-matrix-norm",
    "shape-of-dp",
    "second-derivative-of-entry-norm",
    "tall-data",
    "continuous-slopes",
    "continuous-costs",
    "covariance-bounded-below",
)


def by_scale(power):
    """Return values that go with a power of the weights' size."""
    return lambda row: row["scale"] ** power * (1 + 0.01 * row["trial"])


ASCENT = {"found": "ascent"}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("quadratic-upper-bound", "m", "descent_ratio", ASCENT, const(1.1)),
    ("any-matrix-norm", "m", "stretch_over_entry", {"matrix": "ones"}, const(1.0)),
    ("any-matrix-norm", "m", "stretch_over_operator", {}, first(const(1.1))),
    ("pl-is-not-convex", "m", "wavy_ratio", {}, const(-0.1)),
    ("pl-is-not-convex", "m", "wavy_curvature", {}, const(0.1)),
    ("linear-rate", "m", "rate", {}, first(shift(1.0))),
    ("linear-rate", "p", "rate_bound", {}, first(scale(0.1))),
    ("gradient-by-kernel", "m", "gradient_ratio", {}, first(const(0.9))),
    ("vacuous-below-outputs", "m", "overfull_over_rounding", {}, first(const(9.0))),
    ("derivatives-of-affine-layers", "m", "affine_gap", {}, first(const(0.1))),
    ("derivatives-of-affine-layers", "m", "affine_gap_by_columns", {}, const(0.0)),
    ("shape-of-dp", "m", "matrix_rows_printed", {}, const(0.0)),
    ("shape-of-dp", "m", "matrix_rows", {}, first(const(1.0))),
    ("products-of-lipschitz-maps", "m", "product_bound_ratio", {}, first(const(1.1))),
    ("products-of-lipschitz-maps", "m", "product_constant_ratio", {}, first(const(2))),
    ("derivatives-of-batch-norm", "m", "norm_split_gap", {}, first(const(0.1))),
    ("derivatives-of-batch-norm", "m", "norm_first_gap", {}, first(const(0.1))),
    ("derivatives-of-batch-norm", "m", "norm_second_gap", {}, first(const(0.1))),
    ("derivatives-of-batch-norm", "m", "norm_whole_gap", {}, first(const(0.1))),
    ("derivatives-of-batch-norm", "m", "norm_without_mean", {}, const(0.0)),
    ("derivatives-of-weight-norm", "m", "weight_first_gap", {}, first(const(0.1))),
    ("derivatives-of-weight-norm", "m", "weight_second_gap", {}, first(const(0.1))),
    ("derivatives-of-weight-norm", "m", "entry_first_gap", {}, first(const(0.1))),
    ("second-derivative-of-entry-norm", "m",
     ("entry_printed_exponent", "entry_printed_deltas"), {}, const(0.0)),
    ("second-derivative-of-entry-norm", "m", "entry_second_gap", {}, first(const(0.1))),
    ("skips-lift-singular-values", "m", "skip_slack", {}, first(const(-0.1))),
    ("skips-lift-singular-values", "m", "matrix_slack", {}, first(const(-0.1))),
    ("tall-data", "m", "tall_slack", {}, const(0.0)),
    ("tall-data", "m", "affine_slack", {}, first(const(-0.1))),
    ("batch-norm-hides-earlier-layers", "m", "term_before_norm", {}, first(const(0.1))),
    ("batch-norm-hides-earlier-layers", "m", "term_without_norm", {}, const(0.0)),
    ("chain-rule", "m", "assembled_gap", {}, first(const(0.1))),
    ("bounded-and-lipschitz", "m", "derivative_ratio", {}, first(const(1.1))),
    ("bounded-and-lipschitz", "m", "derivative_constant_ratio", {}, first(const(1.1))),
    ("costs-qualify", "m", "cost_gradient_ratio", {}, first(const(1.1))),
    ("costs-qualify", "m", "cost_constant_ratio", {}, first(const(1.1))),
    ("normalised-is-smooth-everywhere", "m", "hessian_ratio", ASCENT, const(1.1)),
    ("normalised-is-smooth-everywhere", "m", "plain_norm", {}, by_scale(-1)),
    ("plain-weights-are-not", "m", "plain_norm", {}, by_scale(-1)),
    ("continuous-slopes", "m", "quotient_exponent", {}, const(0.0)),
    ("continuous-slopes", "p", "slope_constant", {}, first(scale(0.5))),
    ("continuous-costs", "m", "amplitude", {}, const(0.0)),
    ("continuous-costs", "p", "cycle", {}, first(scale(2.0))),
    ("covariance-bounded-below", "m", "norm_exponent", {}, const(0.0)),
    ("covariance-bounded-below", "m", "norm_jacobian_root", {}, first(const(1.1))),
    ("first-norm-needs-no-covariance", "m", "behind_norm_ratio", ASCENT, const(1.1)),
    ("constants-are-worst-case", "m", "looseness", {},
     lambda row: 2.0 + 0.1 * row["trial"]),
    ("looseness-grows-with-depth", "m", "looseness", {},
     lambda row: 10 ** (1 - row["layers"] + 0.01 * row["trial"])),
    ("sum-over-layers", "m", "kernel_ratio", {}, first(const(1.1))),
    ("positive-at-all-weights", "m", "conditions_met", {}, first(const(0.0))),
    ("positive-at-all-weights", "m", "first_term", {}, first(const(0.0))),
    ("positive-at-all-weights", "m", "least_eigenvalue", {}, first(const(0.0))),
    ("positive-at-all-weights", "m", "dependent_over_rounding", {}, const(1e6)),
    ("not-uniformly", "m", "first_term", {}, by_scale(1)),
    ("not-uniformly", "m", "least_eigenvalue", {}, by_scale(1)),
]  # fmt: skip


TestStudy = study_tests(
    STUDY, COUNTERFACTUALS, dict.fromkeys(ERRATA, ("FAILS", "HOLDS"))
)


def without_the_cost_s_slope(plan, data, cost):
    """A wrong bound: second derivatives of the network are forgotten."""
    bounds = theory.system_bounds(plan, theory.extent_of(data))
    return bounds.smoothness(0.0, theory.cost_bounds(cost, bounds.outputs).curvature)


def of_smoother_norms(plan, data, cost):
    """A wrong bound: that of norms with ten times the eps."""
    first, norm, gate, last = plan.layers
    wide = (replace(one, eps=10 * one.eps) for one in (norm, last))
    made = replace(plan, layers=(first, next(wide), gate, next(wide)))
    return theory.smoothness_bound(made, data, cost)


@pytest.mark.parametrize(
    ("draw", "wrong"),
    [
        (lambda c, t: instance(c, t, blocks=0), without_the_cost_s_slope),
        (behind_norm, of_smoother_norms),
    ],
)
def test_ascent_tells_a_wrong_bound_that_points_do_not(draw, wrong):
    drawn = draw(PRESETS["smoke"], 0)
    wrong_by = theory.smoothness_bound(
        drawn.plan, drawn.inputs, "cross_entropy"
    ) / wrong(drawn.plan, drawn.inputs, "cross_entropy")
    points, ascent = highest_bends(drawn, 0, "hessian_ratio")
    assert points["value"] * wrong_by < 1 < ascent["value"] * wrong_by
    assert ascent["value"] < 1


@pytest.mark.parametrize("name", ["quadratic", "waves"])
def test_a_parabola_a_tenth_too_flat_is_told_by_ascent_alone(name):
    rng = np.random.default_rng(0)
    loss, beta = known_losses(rng)[name]
    points, ascent = climb(loss, [rng.normal(size=6) for _ in range(3)], rng, LENGTH)
    assert points < 0.9 * beta < ascent <= beta * (1 + 1e-7)

"""Layers at rest: verdicts and counterfactuals."""

import numpy as np
import pytest
import torch

from tests.studies.counterfactuals import (
    const,
    first,
    refused,
    scale,
    study_tests,
)
from theodolite.core import ConfigError
from theodolite_papers.poggio2020square.shared.kinks import least_sum_gaps
from theodolite_papers.poggio2020square.shared.split_classes import two_digits
from theodolite_papers.poggio2020square.stationary_layers.config import Config

STUDY = "stationary_layers"
ERRATUM = ("FAILS", "HOLDS")
# What is printed, and for an erratum what is right; all others hold.
VERDICTS = {
    "sum-over-samples": ERRATUM,
    "every-sample": ERRATUM,
    "equal-projections": ERRATUM,
    "orthogonal-matrices": ERRATUM,
    "diagonal-is-preserved": ERRATUM,
    "diagonal-weights": ERRATUM,
    "random-is-orthogonal": ERRATUM,
    "training-orthogonalises": "HOLDS",
    "output-at-rest": ERRATUM,
    "features-are-the-last-layer": ERRATUM,
    "collapse-at-rest": ERRATUM,
    "means-are-opposite": ERRATUM,
}
LINEAR, RELU = {"kind": "linear", "stage": "end"}, {"kind": "relu", "stage": "end"}
END, START = {"stage": "end"}, {"stage": "start"}
CHAIN = {"network": "chain, signed"}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("gradient-is-an-outer-product", "p", "gradient_norm", {"network": "random"},
     first(scale(2.0))),
    ("gradient-is-an-outer-product", "m", "structural_gap", {}, first(const(1e-3))),
    ("sum-over-samples", "m", "sum_gap", RELU, const(0.0)),
    ("sum-over-samples", "m", "sum_gap", LINEAR, first(const(0.1))),
    ("sum-over-samples", "m", "gated_sum_gap", RELU, scale(5.0)),
    ("sum-over-samples", "m", "control_sum_gap", RELU, scale(0.01)),
    ("every-sample", "m", "sample_gap", END, const(0.0)),
    ("every-sample", "m", "sample_gap", {"layer": 1}, first(const(0.01))),
    ("every-sample", "m", "sample_gap", {**LINEAR, "layer": 2}, first(const(1.0))),
    ("every-sample", "p", "first_layer_floor", {}, const(0.0)),
    ("gates-can-be-dropped", "m", "constraint_gap", CHAIN, first(const(0.0))),
    ("gates-can-be-dropped", "m", "constraint_gap",
     {"network": "chain, positive, ungated"}, first(const(1.0))),
    ("recurrent-is-forward", "m", "function_distance", {"kind": "linear"},
     first(const(0.1))),
    ("relu-recurrent-differs", "m", "function_distance", {"kind": "relu"},
     const(1e-4)),
    ("relu-recurrent-differs", "m", "layer_cosine", END, first(const(0.9))),
    ("relu-recurrent-differs", "m", "objective", RELU, const(9.0)),
    ("equal-projections", "m", "constraint_gap",
     {"network": "projection, rank 1, along"}, first(const(1.0))),
    ("equal-projections", "p", "constraint_gap",
     {"network": "projection, rank 2, inside"}, first(scale(2.0))),
    ("orthogonal-matrices", "p", "constraint_gap",
     {"network": "orthogonal, width 3"}, first(scale(2.0))),
    ("diagonal-is-preserved", "m", "off_diagonal", {"network": "diagonal"},
     const(0.0)),
    ("diagonal-weights", "m", "diagonal_gap", {"law": "printed"}, const(0.0)),
    ("diagonal-weights", "m", "diagonal_gap", {"law": "corrected"}, const(0.5)),
    ("random-is-orthogonal", "m", "matrix_distance", {}, scale(0.01)),
    ("random-is-orthogonal", "p", "column_cosine", {}, scale(2.0)),
    ("training-orthogonalises", "m", "projection_gap", END, const(2.0)),
    ("layers-lose-rank", "m", "stable_rank", LINEAR, first(const(2.0))),
    ("layers-lose-rank", "m", "stable_rank", RELU, first(const(3.0))),
    ("output-at-rest", "m", "value_printed", END, const(0.0)),
    ("output-at-rest", "m", "value_corrected", RELU, first(const(0.5))),
    ("features-are-the-last-layer", "m", "class_gap", RELU, const(0.0)),
    ("features-are-the-last-layer", "m", "class_gap",
     {"kind": "single_samples", "stage": "end"}, first(const(0.7))),
    ("collapse-at-rest", "m", "within_share", END, const(0.0)),
    ("collapse-at-rest", "m", "within_share", START, scale(1e-3)),
    ("means-are-opposite", "m", "raw_cosine", RELU, const(-1.0)),
    ("means-are-opposite", "m", "centred_cosine", {"stage": "noise"},
     first(const(0.5))),
    ("last-layer-is-dual", "m", "dual_cosine", RELU, first(const(0.5))),
    ("nearest-centre", "m", "nearest_agreement", RELU, first(const(0.9))),
]  # fmt: skip


TestStudy = study_tests(STUDY, COUNTERFACTUALS, VERDICTS)


def test_slopes_at_a_kink_close_a_sum_that_no_side_does():
    # The second sample is at the unit's kink; a slope of 1/2 makes V_1 the sum.
    layers = [torch.tensor([[0.6, 0.8]]).double(), torch.eye(1).double()]
    samples = torch.tensor([[1.0, -0.8], [0.0, 0.6]]).double()
    inputs = [samples, torch.tensor([[0.6, 0.0]]).double()]
    shares = torch.tensor([5 / 3, 8 / 3]).double()
    kink = torch.tensor([[False, True]])
    one_side = least_sum_gaps(layers, inputs, shares, [torch.zeros_like(kink)])
    chosen = least_sum_gaps(layers, inputs, shares, [kink])
    np.testing.assert_allclose(one_side, [4 / 3, 0], atol=1e-6)
    np.testing.assert_allclose(chosen, [0, 0], atol=1e-6)


def test_two_digits_are_unit_vectors_of_both_signs():
    digits = two_digits(20)
    np.testing.assert_allclose(np.linalg.norm(digits.inputs, axis=1), 1, rtol=1e-12)
    assert digits.labels.tolist() == [-1.0] * 10 + [1.0] * 10


@pytest.mark.parametrize("samples", [0, 7])
def test_samples_must_be_even(samples):
    with pytest.raises(ConfigError, match=f"samples is {samples}"):
        two_digits(samples)


test_settings_that_are_refused = refused(
    Config, ({"depth": 2}, "depth is 2"), ({"decays": (0.0,)}, "decays")
)

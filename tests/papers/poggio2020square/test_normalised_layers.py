"""Normalised layers: verdicts, and counterfactuals."""

import numpy as np
import pytest

from tests.studies.counterfactuals import (
    const,
    first,
    scale,
    shift,
    study_tests,
)
from theodolite.core import ConfigError
from theodolite.theory import batch_norm_jacobian, weight_norm_speeds

STUDY = "normalised_layers"
ERRATA = (
    "projection-left-out",
    "mean-neglected",
    "one-block-for-each-unit",
    "projector-needs-the-batch",
    "root-of-the-rows",
)
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("speeds-under-weight-norm", "m", "gain_speed", {}, first(scale(2.0))),
    ("speeds-under-weight-norm", "m", "vector_speed", {}, first(shift(0.1))),
    ("tangent-gradient-alike", "p", "tangent_speed", {}, first(shift(0.1))),
    ("length-is-kept", "m", "vector_growth", {}, first(const(0.1))),
    ("not-the-plain-dynamics", "m", "plain_gap", {}, first(const(0.0))),
    ("projection-left-out", "m", "unprojected_gap", {}, const(0.0)),
    ("projection-left-out", "m", "projected_gap", {}, first(const(0.1))),
    ("projection-left-out", "m", "invariant_gap", {}, first(const(0.1))),
    ("mean-neglected", "p", "jacobian", {}, first(shift(0.1))),
    ("one-block-for-each-unit", "m", "product_gap", {}, const(0.0)),
    ("one-block-for-each-unit", "m", "blocks_gap", {}, first(const(0.1))),
    ("projector-needs-the-batch", "m", "projector_gap", {}, const(0.0)),
    ("projector-needs-the-batch", "m", "projector_over_n_gap", {}, first(const(0.1))),
    ("activations-are-controlled", "m", "activation_change", {}, first(const(0.1))),
    ("activations-are-controlled", "m", "activation_norm_gap", {}, first(const(0.1))),
    ("each-row-by-itself", "m", "row_pull", {}, first(const(0.1))),
    ("root-of-the-rows", "m", "frobenius_over_rows", {}, const(1.0)),
    ("root-of-the-rows", "m", "frobenius_over_root", {}, first(const(2.0))),
    ("convolutions-exceed-one", "m", "stretch", {}, first(const(0.9))),
    ("convolutions-exceed-one", "m", "stretch_over_bound", {}, first(const(1.1))),
]  # fmt: skip


TestStudy = study_tests(
    STUDY, COUNTERFACTUALS, dict.fromkeys(ERRATA, ("FAILS", "HOLDS"))
)


def test_singular_values_of_batch_norm_are_those_of_the_reference():
    jacobian = batch_norm_jacobian([1, 2, 4, 7], eps=0.1)
    np.testing.assert_allclose(
        np.linalg.svd(jacobian, compute_uv=False),
        [0.4323377012, 0.4323377012, 0.008081078526, 0],
        atol=1e-10,
    )
    printed = batch_norm_jacobian([1, 2, 4, 7], eps=0.1, centred=False)
    np.testing.assert_allclose(printed - jacobian, 0.4323377012 / 4, atol=1e-10)


def test_batches_and_vectors_without_direction_are_refused():
    with pytest.raises(ConfigError, match="alike"):
        batch_norm_jacobian([1, 1])
    with pytest.raises(ConfigError, match="zero"):
        weight_norm_speeds(1.0, [0.0], [1.0])

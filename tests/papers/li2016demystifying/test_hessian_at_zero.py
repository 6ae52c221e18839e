"""Theorem 2: verdicts and counterfactuals."""

import numpy as np
import pytest

from tests.studies.counterfactuals import (
    check_counterfactual,
    claim_of,
    const,
    first,
    rows_of,
    scale,
    shift,
    study_tests,
)
from theodolite.core import PredictedAndMeasured, Rows
from theodolite_papers.li2016demystifying.hessian_at_zero.config import PRESETS, dataset

STUDY = "hessian_at_zero"
SINGULAR, ZERO = {"data": "singular"}, {"data": "zero"}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("hessian-vanishes", "m", "max_entry", {"n": 3}, first(shift(1e-6))),
    ("hessian-vanishes", "m", "max_entry", {"n": 2, "data": "random"}, const(0.0)),
    ("two-shortcut-form", "m", "off_pattern", {}, first(shift(1e-6))),
    ("two-shortcut-form", "m", "unit_spread", {}, first(shift(1e-6))),
    ("two-shortcut-form", "m", "coupling", {}, const(0.0)),
    ("two-shortcut-entries", "m", "entries", {}, first(shift(1e-6))),
    ("two-shortcut-entries", "m", "entries_rival", {"rival": "M transposed"},
     first(const(0.0))),
    ("two-shortcut-entries", "m", "entries_rival", {"rival": "no commutation"},
     first(const(0.0))),
    ("two-shortcut-spectrum", "m", "spectrum", {}, first(shift(1e-6))),
    ("two-shortcut-spectrum", "m", "spectrum_rival", {}, first(const(0.0))),
    ("two-shortcut-condition", "m", "condition", {"units": 2}, first(shift(1e-3))),
    ("two-shortcut-condition", "p", "condition", {}, first(shift(1e-3))),
    ("two-shortcut-condition", "m", "largest", {"n": 1}, const(1.0)),
    ("strict-saddle", "m", "lowest", {"n": 2, "data": "random"}, first(const(0.1))),
    ("strict-saddle", "m", "gradient_norm", {"n": 2}, first(shift(1e-3))),
    ("degenerate-means-zero", "m", "lowest", SINGULAR, first(const(0.1))),
    ("degenerate-means-zero", "m", "flat", SINGULAR, first(const(0.0))),
    ("degenerate-means-zero", "m", "max_entry", ZERO, first(shift(1e-6))),
    ("degenerate-means-zero", "m", "excess", ZERO, first(shift(1e-6))),
    ("degenerate-means-zero", "m", "excess", {"data": "random"}, const(0.0)),
    ("one-shortcut-form", "m", "block_spread", {}, first(shift(1e-6))),
    ("one-shortcut-form", "m", "transposed_above", {}, first(shift(1e-6))),
    ("one-shortcut-form", "m", "same_above", {}, const(0.0)),
    ("one-shortcut-entries", "m", "printed_diagonal", {"setting": "linear"},
     first(shift(1e-6))),
    ("one-shortcut-entries", "m", "printed_lower", {"setting": "linear"}, shift(1e-6)),
    ("one-shortcut-entries", "m", "lower_rival", {"setting": "linear"}, const(0.0)),
    ("one-shortcut-general", "m", "printed_lower", {"setting": "general"}, const(0.0)),
    ("one-shortcut-general", "m", "printed_diagonal", {"setting": "general"},
     const(0.0)),
    ("one-shortcut-general", "m", "closed_form", {"setting": "general"},
     first(shift(1e-6))),
]  # fmt: skip


TestStudy = study_tests(STUDY, COUNTERFACTUALS, {})


@pytest.mark.parametrize(
    ("data", "rank"), [("random", 4), ("singular", 3), ("zero", 0)]
)
def test_degenerate_data_have_the_rank_they_are_named_for(data, rank):
    x, y = dataset(PRESETS["smoke"], data, trial=0)
    single = np.linalg.svd((x - y).T @ x / len(x), compute_uv=False)
    assert np.count_nonzero(single > 1e-12) == rank


def test_an_eigenvalue_that_rounding_leaves_open_is_not_negative(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    vague = Rows(
        {**row, "error": 10.0} if row["quantity"] == "lowest" else row
        for row in both.measured
    )
    found = claim_of(study, "strict-saddle").rule(
        PredictedAndMeasured(both.predicted, vague)
    )
    assert found.outcome == "UNDECIDED"


def test_what_is_ours_is_out_of_the_papers_count(smoke_root):
    study, _ = rows_of(smoke_root, STUDY)
    ours = {claim.name for claim in study.claims if claim.kind == "beyond"}
    assert ours == {"degenerate-means-zero", "one-shortcut-general"}


def test_the_condition_number_is_that_of_eq_9_and_not_its_square(smoke_root):
    check_counterfactual(
        smoke_root, STUDY, ("two-shortcut-condition", "p", "condition", {}, scale(2.0))
    )

"""Shortcut 1 and none: verdicts and counterfactuals."""

import pytest

from tests.studies.counterfactuals import (
    const,
    first,
    refused,
    rows_of,
    shift,
    study_tests,
)

STUDY = "equivalence"
LINEAR, RELU = {"setting": "linear"}, {"setting": "relu before"}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("plain-at-identity", "m", "identity_gap", LINEAR, first(shift(1e-6))),
    ("plain-at-identity", "m", "identity_gap", {"setting": "tanh after"},
     first(const(0.0))),
    ("orthogonal-hessian-similar", "m", "matrix_gap", LINEAR, first(shift(1e-6))),
    ("orthogonal-hessian-similar", "m", "unrotated_gap", LINEAR, first(const(0.0))),
    ("orthogonal-trains-the-same", "m", "training_gap",
     {"kind": "one_shortcut_turned"}, first(shift(1e-6))),
    ("orthogonal-trains-the-same", "m", "training_gap", {"kind": "one_shortcut"},
     first(const(0.0))),
    ("orthogonal-trains-the-same", "m", "training_gap", {"kind": "xavier"},
     first(const(0.0))),
    ("equivalence-ends", "m", "ratio", {}, const(30.0)),
    ("equivalence-ends", "m", "ratio", RELU, const(30.0)),
    ("equivalence-ends", "m", "ratio", {**LINEAR, "kind": "xavier"}, const(30.0)),
    ("equivalence-ends", "m", "spectrum_gap", LINEAR, first(shift(1e-6))),
    ("equivalence-ends", "m", "spectrum_gap", RELU, first(const(0.0))),
    ("general-shortcuts", "m", "curvature", {}, first(shift(1e-6))),
    ("invariance-needs-orthogonal-shortcuts", "m", "general_ratio",
     {"shortcuts": "any"}, const(30.0)),
    ("invariance-needs-orthogonal-shortcuts", "m", "general_ratio",
     {"shortcuts": "orthogonal"}, lambda row: 10.0 ** row["units"]),
]  # fmt: skip


TestStudy = study_tests(
    STUDY,
    COUNTERFACTUALS,
    {},
    alone=["equivalence-ends", "invariance-needs-orthogonal-shortcuts"],
)
test_what_cannot_be_run_is_refused = refused(
    STUDY, ({"depths": (2, 4)}, "at least three")
)


def test_condition_numbers_meet_their_closed_form(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    found = both.measured.where(quantity="ratio", setting="linear", kind="one_shortcut")
    closed_forms = both.predicted.where(quantity="ratio")
    assert len(found) == len(closed_forms)
    for row in found:
        closed = closed_forms.value(depth=row["depth"], trial=row["trial"])
        assert row["value"] == pytest.approx(closed, rel=1e-8)


def test_what_is_ours_is_out_of_the_papers_count(smoke_root):
    study, _ = rows_of(smoke_root, STUDY)
    assert {str(claim.kind) for claim in study.claims} == {"beyond"}

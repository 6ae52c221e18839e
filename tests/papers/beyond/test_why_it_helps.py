"""Interventions on the added map: counterfactuals on which each verdict turns."""

import numpy as np
import pytest

from tests.studies.counterfactuals import (
    check_reproduced,
    claim_of,
    each_case,
    many,
    refused,
    rows_of,
    said,
    scale,
    shift,
    study_tests,
    with_change,
)
from theodolite.core import PredictedAndMeasured, Rows
from theodolite.studies import find
from theodolite_papers.beyond.why_it_helps.config import VARIANTS
from theodolite_papers.beyond.why_it_helps.figure import rank_correlations, table

STUDY = "why_it_helps"
NAMES = list(VARIANTS)


def ordered(sign):
    """Spectra and losses ordered by intervention, alike or against one another."""

    def value(row):
        place = NAMES.index(row["variant"])
        return place if row["quantity"] == "mean" else -sign * place

    return value


def scaled(factor):
    return lambda row: factor * row["scale"] * (1 + row["trial"] / 1000) + 9


HELD, FAILED = ("HOLDS", None), ("FAILS", None)
BLOCKS, SCORES = {"metric": "blocks"}, {"metric": "composite"}
BOTH = ("mean", "log_loss")
# Claim, quantity, labels, change, and what is said then.
COUNTERFACTUALS = [
    ("scale-shifts-blocks", "mean", BLOCKS, scaled(1), HELD),
    ("scale-shifts-blocks", "mean", BLOCKS, scaled(-1), FAILED),
    ("more-is-faster", "log_loss", {}, scaled(-1), HELD),
    ("more-is-faster", "log_loss", {}, scaled(1), FAILED),
    ("blocks-foretell-speed", BOTH, {}, ordered(1), HELD),
    ("blocks-foretell-speed", BOTH, {}, ordered(-1), FAILED),
    ("scores-foretell-speed", BOTH, {}, ordered(1), HELD),
    ("scores-foretell-speed", BOTH, {}, ordered(-1), FAILED),
    ("directions-do-not-matter", "log_loss", {"variant": "random"}, shift(1.0), FAILED),
    ("directions-do-not-matter", "log_loss", {}, lambda row: 0.01 * row["trial"], HELD),
    ("branch-keeps-the-spectrum", "mean", {"variant": "branch"}, scale(2.0), FAILED),
    ("branch-keeps-the-spectrum", "mean", {}, lambda row: 9 + row["trial"], HELD),
]


# Verdicts on two trials go with rounding, and are not checked.
class TestStudy(study_tests(STUDY, COUNTERFACTUALS, check=None)):
    @each_case(COUNTERFACTUALS)
    def test_each_verdict_turns_on_a_counterfactual(self, case, smoke_root):
        claim, quantity, labels, change, wanted = case
        study, both = rows_of(smoke_root, STUDY)
        there = with_change(many(both), "m", quantity, change, **labels)
        assert said(claim_of(study, claim).rule(there)) == wanted


test_what_cannot_be_run_is_refused = refused(
    STUDY,
    ({"datasets": ("cifar10",)}, "architectures are known for mnist"),
    ({"datasets": ()}, "architectures are known for mnist"),
    ({"steps": 5}, "pass at least 10 steps"),
    ({"block_samples": 0}, "at most all samples"),
)


def test_a_correlation_of_ranks_by_hand():
    shift = {"quantity": "mean", "metric": "blocks"}
    speed = {"quantity": "log_loss", "over": 30}
    rows = [
        {"dataset": "digits", "variant": name, "trial": 0, "value": value, **labels}
        for name, mean, loss in (("a", 1, 0), ("b", 2, -3), ("c", 3, -1))
        for value, labels in ((mean, shift), (loss, speed))
    ]
    found = rank_correlations(
        PredictedAndMeasured(Rows(), Rows(rows)), "digits", "blocks"
    )
    assert found == {0: pytest.approx(0.5)}  # ranks 0 1 2 against 0 2 1


def test_points_stand_against_no_addition(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    found = table(both)
    for row in found.where(quantity="point", variant="average × 0"):
        assert (row["shift"], row["value"]) == (0, 0)
    assert len(found.where(quantity="point", metric="blocks")) == len(VARIANTS)
    correlation = found.where(quantity="correlation").values()
    assert np.all(np.abs(correlation) <= 1)


def test_a_cell_of_the_committed_run_is_reproduced():
    check_reproduced(STUDY, {"dataset": "digits", "variant": "random", "trial": 203})


def test_rows_that_are_missing_decide_nothing():
    for claim in find(STUDY).study.claims:
        assert claim.rule(PredictedAndMeasured(Rows(), Rows())).outcome == "UNDECIDED"

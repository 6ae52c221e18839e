"""Certified ratios along training: counterfactuals on which each verdict turns."""

import pytest
import torch

from tests.studies.counterfactuals import (
    claim_of,
    each_case,
    many,
    refused,
    rows_of,
    said,
    study_tests,
    with_change,
)
from theodolite_papers.beyond.certified_ratio.combine import combine, network_of
from theodolite_papers.beyond.certified_ratio.config import (
    BOTH,
    KINDS,
    NEITHER,
    NORMS,
    SKIPS,
    Config,
)
from theodolite_papers.beyond.certified_ratio.figure import levels, rank_correlations

STUDY = "certified_ratio"
BOUNDS = ("ratio_bound", "kernel_bound")


def decades(slope, kinds=KINDS):
    """Return bounds that fall by decades from the start to the end."""

    def value(row):
        falls = slope if row["kind"] in kinds else 0.0
        return 10 ** (-falls * row["step"] / 20) * (1 + row["trial"] / 1000)

    return value


def by_kind(sign):
    return lambda row: 10.0 ** (sign * KINDS.index(row["kind"]) - row["step"] / 100)


HELD, FAILED, SPLIT = ("HOLDS", None), ("FAILS", None), ("UNDECIDED", None)
ALL = (*BOUNDS, "ratio")
# Claim, quantities, change, and what is said then.
COUNTERFACTUALS = [
    ("both-stay", BOUNDS, decades(0.5), HELD),
    ("both-stay", BOUNDS, decades(3.0), FAILED),
    ("skips-alone-fall", BOUNDS, decades(3.0), HELD),
    ("skips-alone-fall", BOUNDS, decades(0.5), FAILED),
    ("norms-alone-fall", BOUNDS, decades(3.0), HELD),
    ("norms-alone-fall", BOUNDS, decades(0.5), FAILED),
    ("neither-falls", BOUNDS, decades(3.0), HELD),
    ("neither-falls", BOUNDS, decades(0.5), FAILED),
    ("norms-keep-it", BOUNDS, decades(1.0, (SKIPS,)), HELD),
    ("norms-keep-it", BOUNDS, decades(1.0, (BOTH,)), FAILED),
    ("certified-orders-true", ALL, by_kind(1), HELD),
]


# Verdicts on two trials go with chance, and are not checked.
class TestStudy(study_tests(STUDY, COUNTERFACTUALS, check=None)):
    @each_case(COUNTERFACTUALS)
    def test_each_verdict_turns_on_a_counterfactual(self, case, smoke_root):
        claim, quantities, change, wanted = case
        study, both = rows_of(smoke_root, STUDY)
        there = with_change(many(both), "m", quantities, change)
        assert said(claim_of(study, claim).rule(there)) == wanted


def test_bounds_against_the_order_of_the_true_ratio_fail(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    there = with_change(many(both), "m", BOUNDS, by_kind(1))
    there = with_change(there, "m", "ratio", by_kind(-1))
    assert said(claim_of(study, "certified-orders-true").rule(there)) == FAILED


def test_a_start_that_differs_turns_one_reading(smoke_root):
    """Bounds far below those of the other network, which do not move."""
    study, both = rows_of(smoke_root, STUDY)

    def low(row):
        return decades(0.0)(row) * (1e-6 if row["kind"] == NORMS else 1)

    there = with_change(many(both), "m", BOUNDS, low)
    judged = claim_of(study, "norms-alone-fall").rule(there).judged
    assert judged.outcome == "UNDECIDED"
    assert "depends on the reading" in judged.because


test_what_cannot_be_run_is_refused = refused(
    STUDY,
    ({"samples": 9}, "classes up to samples up to width"),
    ({"steps": 1}, "and at least 4 steps"),
)


def test_bounds_are_below_the_true_ratio(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    ratios = {
        tuple(row[key] for key in ("task", "kind", "trial", "step")): row["value"]
        for row in both.measured.where(quantity="ratio")
    }
    bounds = both.measured.where(quantity="ratio_bound")
    assert len(bounds) == len(ratios) > 50
    for row in bounds:
        place = tuple(row[key] for key in ("task", "kind", "trial", "step"))
        assert 0 <= row["value"] <= ratios[place]
    for task in both.measured.levels("task"):
        for correlation in rank_correlations(both.measured, task).values():
            assert -1 <= correlation <= 1
    assert {row["over"] for row in levels(both.measured)} == {"own", BOTH}


@pytest.mark.parametrize(("normed", "plain"), [(BOTH, SKIPS), (NORMS, NEITHER)])
def test_networks_start_as_the_same_function(normed, plain):
    config = Config()
    x = torch.randn(5, config.width, dtype=torch.float64)
    pair = [network_of(kind, config, 3)(x) for kind in (normed, plain)]
    torch.testing.assert_close(*pair)


def test_a_run_that_diverges_says_so():
    cell = {"task": "square, rate 1", "trial": 3, "kind": NEITHER}
    rows = combine(Config(steps=200), cell)
    assert rows.where(quantity="loss")[-1]["value"] is None

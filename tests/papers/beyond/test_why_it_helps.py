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
    study_tests,
    with_change,
)
from theodolite.core import PredictedAndMeasured, Rows
from theodolite.studies import find
from theodolite_papers.beyond.why_it_helps.config import VARIANTS
from theodolite_papers.beyond.why_it_helps.figure import (
    rank_correlations,
    speeds,
    table,
)

STUDY = "why_it_helps"
NAMES = list(VARIANTS)


def ordered(sign):
    """Spectra and losses ordered by intervention, alike or against one another."""

    def value(row):
        place = NAMES.index(row["variant"])
        return place if row["quantity"] == "mean" else fallen(row, -sign * place / 9)

    return value


def fallen(row, log):
    """Return a loss that falls from step to step, so that its run is alive."""
    return 10 ** (log - 0.1 * row["step"])


def scaled(factor):
    def value(row):
        size = factor * row["scale"] * (1 + row["trial"] / 1000)
        return fallen(row, size) if row["quantity"] == "loss" else size + 9

    return value


HELD, FAILED = ("HOLDS", None), ("FAILS", None)
BLOCKS, SCORES = {"metric": "blocks"}, {"metric": "composite"}
BOTH = ("mean", "loss")
# Claim, quantity, labels, change, and what is said then.
COUNTERFACTUALS = [
    ("scale-shifts-blocks", "mean", BLOCKS, scaled(1), HELD),
    ("scale-shifts-blocks", "mean", BLOCKS, scaled(-1), FAILED),
    ("more-is-faster", "loss", {}, scaled(-1), HELD),
    ("more-is-faster", "loss", {}, scaled(1), FAILED),
    ("blocks-foretell-speed", BOTH, {}, ordered(1), HELD),
    ("blocks-foretell-speed", BOTH, {}, ordered(-1), FAILED),
    ("scores-foretell-speed", BOTH, {}, ordered(1), HELD),
    ("scores-foretell-speed", BOTH, {}, ordered(-1), FAILED),
    ("directions-do-not-matter", "loss", {"variant": "random"}, scale(9.0), FAILED),
    ("directions-do-not-matter", "loss", {},
     lambda row: fallen(row, 0.01 * row["trial"]), HELD),
    ("branch-keeps-the-spectrum", "mean", {"variant": "branch"}, scale(2.0), FAILED),
    ("branch-keeps-the-spectrum", "mean", {}, lambda row: 9 + row["trial"], HELD),
]  # fmt: skip


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
    shift, speed = (
        Rows({"variant": name, "trial": 0, "value": value} for name, value in pairs)
        for pairs in ((("a", 1), ("b", 2), ("c", 3)), (("a", 0), ("b", -3), ("c", -1)))
    )
    # Ranks 0 1 2 against 0 2 1.
    assert rank_correlations(shift, speed) == {0: pytest.approx(0.5)}


def test_speeds_are_means_of_both_kinds_over_the_first_steps():
    run = {"dataset": "digits", "variant": "a", "trial": 0, "scale": 0.0, "error": 0.0}
    losses = [9.0, *[1.0] * 20, *[0.1] * 10]
    rows = Rows(
        {**run, "quantity": "loss", "step": step, "value": loss}
        for step, loss in enumerate(losses)
    )
    found = {(r["over"], r["axis"]): r["value"] for r in speeds(rows)}
    assert found[20, "linear"] == found[20, "logarithmic"] == 0
    assert found[30, "linear"] == pytest.approx(np.log10(0.7))
    assert found[30, "logarithmic"] == pytest.approx(-1 / 3)


def test_a_verdict_that_one_axis_turns_depends_on_the_reading(smoke_root):
    """With the scale the first loss rises a little and the last falls by decades."""

    def value(row):
        size = row["scale"] * (1 + row["trial"] / 1000)
        last = row["step"] == 10
        return 10 ** (-1.5 * size - 0.5) if last else fallen(row, 0.1 * size)

    study, both = rows_of(smoke_root, STUDY)
    there = with_change(many(both), "m", "loss", value)
    judged = claim_of(study, "more-is-faster").rule(there).judged
    assert judged.outcome == "UNDECIDED"
    assert "depends on the reading" in judged.because


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
        assert claim.rule(PredictedAndMeasured(Rows(), Rows())).outcome == "NOT RUN"

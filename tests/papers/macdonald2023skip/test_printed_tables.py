"""What the printed tables say of themselves, and counterfactuals."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.papers.macdonald2023skip.image_counterfactuals import verdict
from tests.studies.counterfactuals import altered, claim_of, const, scale
from theodolite.core import PredictedAndMeasured, Rows
from theodolite_papers.macdonald2023skip.image_tables import STUDY
from theodolite_papers.macdonald2023skip.image_tables_imagenet import STUDY as IMAGENET
from theodolite_papers.macdonald2023skip.shared.printed_tables import (
    between_models,
    homogeneity,
    printed_rows,
    significance,
)

PRINTED = printed_rows(1, 2, 3)
ROADS = PredictedAndMeasured(PRINTED, Rows())
LOSS, ACCURACY = "printed_loss", "printed_accuracy"


def changed(quantity, change, **labels):
    return altered(PRINTED, quantity, change, **labels)


def test_cells_are_those_of_the_paper():
    assert len(PRINTED) == 16 + 16 + 14
    cell = {"table": 1, "rate": 0.02, "added_identity": 1.0}
    found = PRINTED.only(quantity=ACCURACY, **cell)
    assert (found["value"], found["spread"], found["n"]) == (88.94, 0.35, 10)
    assert found["error"] == pytest.approx(0.35 / 3 + 0.005)
    assert not len(PRINTED.where(table=3, rate=0.2, added_identity=1.0))


def test_p_values_are_welch_s():
    """Population deviations, as the published script computes them."""
    found = significance(ACCURACY, 1, 0.02, cells=1)(ROADS)
    up = math.sqrt(10 / 9)
    wanted = stats.ttest_ind_from_stats(
        88.94, 0.35 * up, 10, 89.50, 0.32 * up, 10, equal_var=False
    ).pvalue
    assert found.value - found.slack == pytest.approx(wanted, rel=1e-9)
    assert found.slack > 0
    assert significance(ACCURACY, 1, 0.02, cells=8)(ROADS).value == pytest.approx(
        8 * found.value
    )


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("sample", [False, True])
def test_p_values_are_those_of_the_usual_tests(pooled, sample):
    found = significance(ACCURACY, 3, 0.05, pooled=pooled, better=True, sample=sample)(
        ROADS
    )
    up = 1 if sample else math.sqrt(3 / 2)
    wanted = stats.ttest_ind_from_stats(
        74.84, 0.03 * up, 3, 74.62, 0.12 * up, 3, equal_var=pooled,
    ).pvalue  # fmt: skip
    assert found.value - found.slack == pytest.approx(wanted, rel=1e-9)


def test_the_deviation_of_two_equal_trials_and_one_at_chance():
    """49.24 ± 34.75 to the digit."""
    trials = np.array([73.81, 73.81, 0.1])
    assert trials.mean() == pytest.approx(49.24, abs=0.005)
    assert trials.std() == pytest.approx(34.75, abs=0.005)


def test_homogeneity_is_fisher_s():
    """Samples made to have the printed means and deviations."""
    base = [-1.0, 1.0] * 5
    rows = PRINTED.where(quantity=LOSS, table=2, added_identity=0.0)
    groups = [[row["value"] + row["spread"] * x for x in base] for row in rows]
    wanted = stats.f_oneway(*groups).pvalue
    assert homogeneity(ROADS, LOSS, 2, 0.0) == pytest.approx(wanted, rel=1e-9)


def test_logarithms_go_by_the_delta_method():
    found = between_models(LOSS, 1, 0.1, log=True)(ROADS)
    assert found.value == pytest.approx(math.log10(0.0022 / 0.0032))
    parts = [0.0002 / 3 / (value * math.log(10)) for value in (0.0022, 0.0032)]
    assert found.stderr == pytest.approx(math.hypot(*parts))


HOLDS, FAILS, REFUTED = ("HOLDS", None), ("FAILS", None), ("FAILS", "HOLDS")
MODIFIED = {"added_identity": 1.0}
# Claim, and what is said where cells were otherwise.
COUNTERFACTUALS = [
    (STUDY, [
        ("ends-lower-in-print", PRINTED, FAILS),
        ("ends-lower-in-print", changed(LOSS, scale(0.5), **MODIFIED), HOLDS),
        ("one-rate-in-table-2", PRINTED, REFUTED),
        ("one-rate-in-table-2", changed(LOSS, scale(3.5), table=2, rate=0.02),
         ("HOLDS", "FAILS")),
        ("one-rate-in-table-2", changed(LOSS, const(0.0032), table=1, rate=0.02),
         ("FAILS", "FAILS")),
        ("accuracies-differ-in-print", PRINTED, REFUTED),
        ("accuracies-differ-in-print", changed(ACCURACY, const(80.0)),
         ("HOLDS", "UNDECIDED")),
        ("trials-left-out", PRINTED, FAILS),
        ("trials-left-out", changed(ACCURACY, const(40.0), table=1, rate=0.2), HOLDS),
    ]),
    (IMAGENET, [
        ("one-row-two-counts", PRINTED, REFUTED),
        ("one-row-two-counts", changed(LOSS, const(7.5), table=3, rate=0.2),
         ("HOLDS", "HOLDS")),
        ("one-row-two-counts", changed(ACCURACY, const(60.0), table=3, rate=0.2),
         ("FAILS", "FAILS")),
        ("better-in-print", PRINTED, ("UNDECIDED", None)),
        ("better-in-print", changed(ACCURACY, const(76.0), **MODIFIED), HOLDS),
        ("better-in-print", changed(ACCURACY, const(74.0), **MODIFIED), FAILS),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("study", "case"),
    [(study, case) for study, cases in COUNTERFACTUALS for case in cases],
)
def test_each_verdict_can_turn(study, case):
    name, printed, wanted = case
    assert verdict(study, name, Rows(), printed) == wanted


def test_whether_rows_of_table_2_are_one_population_is_told():
    """Two of four analyses of variance say no at 5 %: the page shows it."""
    asides = claim_of(STUDY, "one-rate-in-table-2").rule(ROADS).asides
    found = {name: round(float(p), 3) for name, p in asides.items()}
    assert found == {
        "p of equal losses, original": 0.028,
        "p of equal losses, modified": 0.927,
        "p of equal accuracies, original": 0.289,
        "p of equal accuracies, modified": 0.009,
    }

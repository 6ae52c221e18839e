"""Figure 4: verdicts and counterfactuals."""

import numpy as np
import pytest

from tests.studies.counterfactuals import (
    WITH_MNIST,
    check_reproduced,
    claim_of,
    const,
    first,
    rows_of,
    scale,
    shift,
    study_tests,
)
from theodolite.core import (
    PredictedAndMeasured,
    Rows,
    ShortcutBlueprint,
    above,
    condition_of,
    measured,
    trend,
)
from theodolite.networks import initial_weights
from theodolite.theory import conditioning_at_zero, linear_hessian, linear_loss, moments
from theodolite_papers.li2016demystifying.initial_condition.claims import explodes
from theodolite_papers.li2016demystifying.shared.whitened import whitened

STUDY = "initial_condition"
# What is printed, and for an erratum what is right; all others hold.
VERDICTS = {
    "one-shortcut-explodes": ("FAILS", "HOLDS"),
    "conventions-unstated": ("FAILS", "HOLDS"),
}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("two-shortcut-constant", "p", "ratio", {"kind": "two_shortcut"},
     first(shift(0.1))),
    ("two-shortcut-constant", "m", "ratio", {"kind": "two_shortcut"},
     lambda row: row["depth"]),
    ("two-shortcut-constant", "m", "ratio", {"kind": "one_shortcut"}, const(3.0)),
    ("xavier-explodes", "m", "ratio", {"kind": "xavier"}, const(50.0)),
    ("orthogonal-explodes", "m", "ratio", {"kind": "orthogonal"}, const(4.0)),
    ("one-shortcut-grows", "m", "ratio", {"kind": "one_shortcut"}, const(3.0)),
    ("orthogonal-slower", "m", "ratio", {"kind": "xavier"},
     lambda row: 4.0 * row["depth"]),
    ("one-shortcut-explodes", "p", "block_norm", {}, const(0.0)),
    ("one-shortcut-explodes", "p", "slope", {}, scale(2.0)),
    ("one-shortcut-explodes", "p", "ratio", {"kind": "one_shortcut"}, const(3.0)),
    ("one-shortcut-explodes", "m", "ratio", {"kind": "one_shortcut"}, const(3.0)),
    ("one-shortcut-is-none", "m", "ratio", {"kind": "orthogonal"}, scale(30.0)),
    ("one-shortcut-is-orthogonal", "m", "rotated_gap", {}, first(shift(1e-6))),
    ("conventions-unstated", "m",
     ("percentile", "convention_least", "convention_most"), {}, const(1.5)),
    ("conventions-unstated", "m", "percentile", {}, const(1.5)),
    ("conventions-unstated", "m", ("convention_least", "convention_most"), {},
     const(1.5)),
]  # fmt: skip


ALONE = ("two-shortcut-constant", "xavier-explodes", "orthogonal-explodes",
         "orthogonal-slower", "one-shortcut-is-none")  # fmt: skip
TestStudy = study_tests(STUDY, COUNTERFACTUALS, VERDICTS, alone=ALONE)


@pytest.mark.parametrize("kind", ["xavier", "orthogonal", "one_shortcut"])
def test_a_rise_that_levels_off_is_no_explosion(kind):
    """A slope over all depths alone would hold: early depths carry it."""
    level = [
        {"quantity": "ratio", "kind": kind, "depth": depth, "trial": trial,
         "value": min(depth, 8) * (1 + 0.01 * np.cos(5 * trial + depth)),
         "error": 0.0, "status": "exact"}
        for depth in (2, 4, 8, 16, 32)
        for trial in range(10)
    ]  # fmt: skip
    rows = PredictedAndMeasured(Rows(), Rows(level))
    assert trend(measured("ratio"), over="depth", slope_in=above(0))(rows).outcome == (
        "HOLDS"
    )
    assert explodes(kind)(rows).outcome != "HOLDS"


def unresolved(rows, **labels):
    """Return the rows as if those with these labels were below rounding."""
    return Rows(
        {**row, "status": "rounding", "error": None}
        if row.get("quantity") == "ratio"
        and all(row.get(key) == value for key, value in labels.items())
        else row
        for row in rows
    )


def test_a_depth_with_a_network_below_rounding_is_not_counted(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    lost = unresolved(both.measured, kind="xavier", depth=8, trial=0)
    found = claim_of(study, "xavier-explodes").rule(
        PredictedAndMeasured(both.predicted, lost)
    )
    assert found.outcome == "UNDECIDED"


def test_no_xavier_network_above_rounding_decides_nothing(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    lost = PredictedAndMeasured(
        both.predicted, unresolved(both.measured, kind="xavier")
    )
    for name in ("xavier-explodes", "orthogonal-slower"):
        assert claim_of(study, name).rule(lost).outcome == "NOT RUN"


def test_moments_meet_measurement_on_all_samples(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    for quantity in ("moments_gap", "samples_gap"):
        gaps = both.measured.where(quantity=quantity)
        assert len(gaps) >= 4
        assert gaps.values().max() < 1e-10


@pytest.fixture(scope="module")
def digits():
    return whitened("mnist5k", 10)


class TestReferenceValues:
    """Numbers of the whitened 5,000 digits, from an independent computation."""

    def test_moments(self, digits):
        data = moments(*digits)
        assert np.linalg.norm(data.yx) == pytest.approx(0.5699383735, abs=1e-9)
        assert np.trace(data.yx) == pytest.approx(0.3218081488, abs=1e-9)
        assert data.optimal_loss() == pytest.approx(0.337585125188, abs=1e-10)
        single = np.linalg.svd(data.gap, compute_uv=False)
        assert single[[0, -1]] == pytest.approx([1.1895867104, 0.7828797053], abs=1e-9)
        assert single[0] / single[-1] == pytest.approx(1.5195012751, abs=1e-9)

    def test_losses(self, digits):
        plan, data = ShortcutBlueprint(width=10, depth=16), moments(*digits)
        zero = np.zeros((16, 10, 10))
        assert linear_loss(plan, zero, data) == pytest.approx(5.178191851163, abs=1e-10)
        drawn = initial_weights(plan, seed=0)
        assert linear_loss(plan, drawn, data) == pytest.approx(5.1778549759, abs=1e-9)

    @pytest.mark.parametrize("depth", [2, 16, 96])
    def test_two_shortcut(self, digits, depth):
        found = conditioning_at_zero(ShortcutBlueprint(width=10, depth=depth), *digits)
        assert found.ratio == pytest.approx(1.4701596921, abs=1e-9)
        assert found.largest == pytest.approx(1.1895867104, abs=1e-9)
        assert found.index == 0.5

    @pytest.mark.parametrize(
        ("depth", "ratio"),
        [(2, 3.7618673467), (4, 9.3919131267), (8, 20.5347833356),
         (16, 42.6898124708), (24, 64.8828498720)]
    )  # fmt: skip
    def test_one_shortcut(self, digits, depth, ratio):
        plan = ShortcutBlueprint(width=10, depth=depth, shortcut=1)
        found = conditioning_at_zero(plan, *digits)
        assert found.ratio == pytest.approx(ratio, abs=1e-8)
        if depth == 24:
            assert found.largest == pytest.approx(51.318, abs=1e-3)

    @pytest.mark.parametrize(
        ("init", "depth", "ratio"),
        [("orthogonal", 2, 3.7016988), ("orthogonal", 4, 9.2692928),
         ("orthogonal", 8, 20.112262), ("orthogonal", 16, 41.994434),
         ("xavier", 2, 55.569872), ("xavier", 4, 2033.2254),
         ("xavier", 8, 247970.09), ("xavier", 16, 1.1885038e8)]
    )  # fmt: skip
    def test_plain_networks(self, digits, init, depth, ratio):
        plan = ShortcutBlueprint(
            width=10, depth=depth, shortcut=1, skip=False, init=init
        )
        matrix = linear_hessian(plan, initial_weights(plan, seed=0), moments(*digits))
        found = condition_of(np.linalg.eigvalsh(matrix))
        assert found.ratio == pytest.approx(ratio, rel=1e-6)


@WITH_MNIST
def test_a_cell_of_the_committed_run_is_reproduced():
    check_reproduced(STUDY, {"kind": "two_shortcut", "depth": 2, "trial": 3})

"""Theorem 1: verdicts and counterfactuals."""

import numpy as np
import pytest

from tests.studies.counterfactuals import (
    claim_of,
    const,
    first,
    rows_of,
    shift,
    study_tests,
    with_change,
)
from theodolite.theory import interpolating_network
from theodolite_papers.li2016demystifying.small_weights.predict import points

STUDY = "small_weights"
REFUTED = ("FAILS", "HOLDS")
VERDICTS = {
    "bracket-under-the-root": ("HOLDS", "HOLDS"),
    "units-not-shortcuts": REFUTED,
    "labels-repeat": REFUTED,
}
COUNTERFACTUALS = [
    ("one-step-a-unit", "m", "gain", {}, first(shift(1e-6))),
    ("one-step-a-unit", "m", "others_moved", {}, first(shift(1e-6))),
    ("one-step-a-unit", "m", "norm_gap", {}, first(shift(1e-6))),
    ("one-step-a-unit", "m", "inside_moved", {}, first(const(0.0))),
    ("clear-of-caps", "m", "clearance", {}, first(const(0.49))),
    ("clear-of-caps", "p", "length_share", {}, first(const(1.01))),
    ("clear-of-caps", "p", "straight", {}, const(0.8)),
    ("steps-suffice", "m", "step_share", {}, first(const(1.0))),
    ("steps-suffice", "m", "counted_miss", {}, first(const(1e-6))),
    ("interpolates-exactly", "m", "output_error", {}, first(shift(1e-8))),
    ("norms-shrink", "m", "max_norm", {"case": "basis"}, const(1.0)),
    ("biases-shrink", "m", "bias_norm", {"case": "basis"}, const(1.0)),
    ("bracket-under-the-root", "p", "over_printed", {}, first(const(6.0))),
    ("bracket-under-the-root", "p", "over_corrected", {},
     lambda row: row["bracket"] ** 0.5),
    ("bracket-under-the-root", "m", "bound_share", {}, first(const(1.1))),
    ("units-not-shortcuts", "m", "max_norm", {}, const(1.0)),
    ("units-not-shortcuts", "p", "circle", {}, const(0.3)),
    ("units-not-shortcuts", "m", "output_error", {}, first(const(0.1))),
    ("labels-repeat", "m", ("label_distance", "norm_least", "norm_most"), {},
     const(1.0)),
    ("labels-repeat", "m", "error_perturbed", {}, shift(1e-6)),
    ("labels-repeat", "m", "rho_perturbed", {}, const(0.0)),
    ("rounding-grows", "m", "error_open", {}, const(1e-12)),
    ("rounding-grows", "m", "error_closed", {}, first(shift(1e-8))),
    ("rounding-grows", "m", "error_open", {},
     lambda row: row["value"] if row["rho"] <= 0.1
     else min(row["value"], 1.0) ** 0.5),
]  # fmt: skip


TestStudy = study_tests(STUDY, COUNTERFACTUALS, VERDICTS)


@pytest.mark.parametrize(
    "quantity", ["label_distance", "norm_least"], ids=["labels", "norms"]
)
def test_either_assumption_alone_is_refuted(quantity, smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    claim = claim_of(study, "labels-repeat")
    mended = ("label_distance", "norm_least", "norm_most")
    others = tuple(name for name in mended if name != quantity)
    counterfactual = with_change(both, "m", others, const(1.0))
    assert claim.rule(counterfactual).outcome == "FAILS"


def test_eq_19_counts_the_units_of_the_built_networks(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    rows = both.measured.where(quantity="step_share", case="6,4")
    rho = both.predicted.value(quantity="rho", case="6,4")
    for row in rows:
        a_sample = np.ceil((rho * 5 / 2 + 1) * np.pi / row["longest"])
        assert row["units"] == 6 * a_sample


@pytest.mark.parametrize("case", ["basis", "detour", "6,4"])
def test_norms_tend_to_the_limit_of_the_longest_path(case):
    """A property of our construction, not of the paper: its bound is not reached."""
    x, y = points(case, 0)
    network = interpolating_network(x, y, 80 * len(x))
    limit = np.sqrt(8 * len(x) * network.lengths.max()) / network.rho
    found = network.max_norm * np.sqrt(network.units)
    np.testing.assert_allclose(found, limit, rtol=1e-3)
    shorter = interpolating_network(x, y, 20 * len(x))
    ratio = shorter.max_bias / network.max_bias
    np.testing.assert_allclose(ratio, 2, rtol=0.01)

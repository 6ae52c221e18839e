"""Nonlinear networks near zero: verdicts, and counterfactuals."""

import numpy as np

from tests.studies.counterfactuals import (
    claim_of,
    const,
    first,
    rows_of,
    shift,
    study_tests,
    with_change,
)
from theodolite.studies import find
from theodolite.studies.judging import with_committed

STUDY = "relu_exact"
INVARIANT = "relu-condition-invariant"
# Four networks to depth 8 do not tell an exponent of 0.06 ± 0.05 from none.
VERDICTS = {INVARIANT: "UNDECIDED"}
TWO = {"kind": "two_shortcut"}


def spread(row):
    """Networks that differ a little, each depth in its own way."""
    return 3.0 + 0.001 * ((3 * row["trial"] + row["depth"]) * 5 % 7)


COUNTERFACTUALS = [
    (INVARIANT, "m", "ratio", TWO, spread),
    (INVARIANT, "m", "ratio", TWO, lambda row: spread(row) * row["depth"]),
    ("one-shortcut-explodes-nonlinear", "m", "ratio", {"kind": "tanh"}, spread),
    ("one-shortcut-explodes-nonlinear", "m", "ratio", {"kind": "relu_before"}, spread),
    ("one-shortcut-explodes-nonlinear", "m", "ratio", {"kind": "relu_after"}, spread),
    ("relu-extremes-spread", "m", "mean_size", TWO,
     lambda row: spread(row) * row["depth"]),
    ("relu-extremes-spread", "m", "largest", TWO, spread),
    ("relu-extremes-spread", "p", "ceiling", {}, const(0.5)),
    ("relu-decomposition", "m", "whole", {}, first(shift(1e-6))),
    ("relu-decomposition", "m", "gauss_newton", {}, first(shift(1e-6))),
    ("relu-decomposition", "m", "exact_gap", {}, first(shift(1e-6))),
    ("relu-decomposition", "m", "without_residual", {}, first(const(0.0))),
    ("relu-decomposition", "m", "open_gates", {}, first(const(0.0))),
    ("relu-within-layers", "m", "within", {}, first(shift(1e-6))),
    ("relu-within-layers", "m", "within_tanh", {}, const(0.0)),
    ("relu-limit-at-zero", "m", "limit_gap", {}, lambda row: 0.1 * row["scale"]),
]  # fmt: skip


TestStudy = study_tests(
    STUDY,
    COUNTERFACTUALS,
    VERDICTS,
    alone=(INVARIANT, "one-shortcut-explodes-nonlinear", "relu-limit-at-zero"),
)


def test_the_measure_is_the_paper_s_on_the_paper_s_data():
    """Ratios are |λ|max/|λ|(0.1) of width 10 on whitened digits, all measured."""
    study = find(STUDY).study
    for scale_ in ("smoke", "quick", "paper"):
        config = study.presets[scale_]
        assert config.width == 10
        assert config.dataset in study.datasets(config)
    rows = study.committed.run.rows()
    ratios = rows.where(quantity="ratio")
    top, small = (rows.where(quantity=name).values() for name in ("largest", "small"))
    np.testing.assert_allclose(ratios.values(), top / small, rtol=1e-5)


def test_the_committed_run_decides(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    found = with_committed(study, study.presets["quick"], both).committed
    for claim in study.claims:
        assert claim.rule(found).outcome == "HOLDS", claim.name


def test_a_cell_of_the_committed_run_is_reproduced():
    study = find(STUDY).study
    paper = study.presets["paper"]
    cell = {"task": "digits", "kind": "two_shortcut", "depth": 2, "trial": 3}
    assert cell in study.cells(paper)
    kept = study.committed.run.of_cell(paper, cell)
    new = study.of_cell(paper, cell)
    assert {row["quantity"] for row in kept} >= {"ratio", "mean_size"}
    for row in kept:
        found = new.value(quantity=row["quantity"])
        np.testing.assert_allclose(found, row["value"], rtol=1e-6)


def test_invariance_is_not_proved_where_all_grow_alike(smoke_root):
    """Where 1-shortcut networks stay too, the data tell nothing apart."""
    study, both = rows_of(smoke_root, STUDY)
    flat = with_change(both, "m", "ratio", spread)
    assert claim_of(study, INVARIANT).rule(flat).outcome == "UNDECIDED"


def test_closed_forms_at_zero_are_near_measured_ratios(smoke_root):
    """Small weights are near zero, where activations are smooth."""
    study, both = rows_of(smoke_root, STUDY)
    compared = study.compare(both)
    assert len(compared) >= 4
    for row in compared:
        np.testing.assert_allclose(row["measured"], row["predicted"], rtol=0.05)

"""Section 4.1 on signals: verdicts, and counterfactuals."""

import numpy as np
import pytest
import torch

from tests.studies.counterfactuals import (
    claim_of,
    first,
    many,
    rows_of,
    shift,
    study_tests,
    with_change,
)
from theodolite.core import PreactivationBlueprint, PredictedAndMeasured, Rows
from theodolite.networks import build
from theodolite.studies import find
from theodolite.studies.judging import with_committed
from theodolite_papers.li2016demystifying.signal_sizes.measure import responses

STUDY = "signal_sizes"
RESPONSES = "deeper-smaller-responses"


def near(value):
    """Networks that differ a little, each depth in its own way."""
    return lambda row: (
        value + 0.001 * ((3 * row["trial"] + row.get("depth", 3)) * 5 % 7)
    )


COUNTERFACTUALS = [
    ("variance-explodes", "m", "variance", {"kind": "residual"}, near(2.0)),
    ("variance-explodes", "m", "variance", {"kind": "plain"},
     lambda row: near(1.0)(row) * 4.0 ** row["units"]),
    ("norm-solves-it-partly", "m", "variance", {"kind": "normalised"}, near(2.0)),
    ("norm-solves-it-partly", "m", "variance", {"kind": "normalised"},
     lambda row: near(1.0)(row) * 4.0 ** row["units"]),
    ("zero-keeps-variance", "m", "change_at_zero", {"kind": "residual"},
     first(shift(1e-6))),
    ("zero-keeps-variance", "m", "change_at_zero", {"kind": "normalised"},
     first(shift(1e-6))),
    (RESPONSES, "m", "response", {}, lambda row: near(1.0)(row) / row["depth"]),
]  # fmt: skip


# Two networks, as SMOKE trains, prove little of responses.
# The fourth claim is exact, network by network.
TestStudy = study_tests(
    STUDY,
    COUNTERFACTUALS,
    {RESPONSES: "UNDECIDED"},
    copies={RESPONSES: 4},
    alone=("variance-explodes", "norm-solves-it-partly", RESPONSES),
)


@pytest.mark.parametrize(("power", "wanted"), [(-1, "HOLDS"), (1, "FAILS")])
def test_responses_are_judged_by_how_they_go_with_depth(power, wanted, smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    counterfactual = with_change(
        many(both, 4),
        "m",
        "response",
        lambda row: near(1.0)(row) * row["depth"] ** power,
    )
    assert claim_of(study, RESPONSES).rule(counterfactual).outcome == wanted


def test_the_committed_run_decides(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    found = with_committed(study, study.presets["quick"], both).committed
    for claim in study.claims:
        if not claim.own_rows_only:
            assert claim.rule(found).outcome == "HOLDS", claim.name


def test_a_variance_that_other_weights_keep_too_tells_nothing(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    rows = ({**row, "at_he": 0.0} if "at_he" in row else row for row in both.measured)
    found = claim_of(study, "zero-keeps-variance").rule(
        PredictedAndMeasured(both.predicted, Rows(rows))
    )
    assert found.outcome != "HOLDS"


@pytest.mark.parametrize(
    "cell",
    [
        {"task": "start", "kind": "residual", "units": 8, "trial": 3},
        {"task": "start", "kind": "normalised", "units": 4, "trial": 0},
    ],
)
def test_a_cell_of_the_committed_run_is_reproduced(cell):
    study = find(STUDY).study
    paper = study.presets["paper"]
    assert cell in study.cells(paper)
    (kept,) = study.committed.run.of_cell(paper, cell)
    found = study.of_cell(paper, cell).value(quantity="variance")
    np.testing.assert_allclose(found, kept["value"], rtol=1e-6)


def test_variances_are_those_of_the_closed_form():
    """Over 20 networks of 16 channels; a rival without the image's edge is off."""
    study = find(STUDY).study
    paper = study.presets["paper"]
    both = PredictedAndMeasured(study.predict(paper), study.committed.run.rows())
    compared = study.compare(both)
    shallow = [row for row in compared if row["label"].endswith(" 2 units")]
    assert len(shallow) == 3
    for row in shallow:
        assert abs(row["measured"] - row["predicted"]) < 4 * row["error"] + 0.05
    doubled = study.predict(paper).value(
        quantity="variance", kind="residual", units=32
    ) / study.predict(paper).value(quantity="variance", kind="residual", units=16)
    assert 1.5**16 < doubled < 2**16


def test_networks_that_stopped_early_do_not_count(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    stopped = Rows(
        {**row, "status": "stopped"} if row.get("quantity") == "response" else row
        for row in both.measured
    )
    found = claim_of(study, RESPONSES).rule(
        PredictedAndMeasured(both.predicted, stopped)
    )
    assert found.outcome == "NOT RUN"
    assert "there are no such rows" in found.judged.because


def test_responses_are_branches_before_the_sum_and_leave_the_model_as_found():
    plan = PreactivationBlueprint(depth=6, shortcut=2, width=4, stages=1, channels=1)
    model = build(plan, seed=0).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    batch = torch.randn(8, 1, 6, 6, generator=torch.Generator().manual_seed(0))
    found = responses(model, batch)
    assert len(found) == 2
    assert not model.training
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)
    model.train()
    with torch.no_grad():
        signal = model.stem(batch)
        added = model.units[0](signal) - signal
    np.testing.assert_allclose(found[0], float(added.std()), rtol=1e-5)

"""Curvature of batches and the whole set: counterfactuals; readings against oracles."""

import importlib
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tests.studies.counterfactuals import (
    check_both_ways,
    claim_of,
    refused,
    study_tests,
)
from theodolite.core import MeasurementError, PredictedAndMeasured, Rows
from theodolite.instruments.passes import forecast
from theodolite.studies import find
from theodolite_papers.beyond.whole_set_curvature.config import (
    BATCHES,
    DESCENT,
    FROZEN,
    FROZEN_BATCHES,
    RULES,
    RUNNING,
    STOCHASTIC,
    TOGETHER,
    WHOLE,
    cells,
)
from theodolite_papers.beyond.whole_set_curvature.figure import corners, table

NAME = "whole_set_curvature"
STUDY = find(NAME).study
measure = importlib.import_module(f"{STUDY.measure.__module__}")
EDGES = {DESCENT: 20.0, STOCHASTIC: 38.0}
MOMENTS = (0.0, 0.5, 0.9, 1.0)
# Readings over the edge with which every claim holds, at the start and later.
START = {BATCHES: 0.11, WHOLE: 0.1}
LATER = {
    DESCENT: {BATCHES: 2.5, WHOLE: 1.0, TOGETHER: 1.02, FROZEN: 1.01, RUNNING: 0.99,
              FROZEN_BATCHES: 2.4},
    STOCHASTIC: {BATCHES: 1.0, WHOLE: 0.4, RUNNING: 0.4},
}  # fmt: skip


def made_rows(start=None, later=None, **changes):
    """Return both sides with factors of our choice: readings, or readings of a rule."""
    rows = []
    for rule, moment, trial in (
        (r, m, t) for r in RULES for m in MOMENTS for t in range(4)
    ):
        told = LATER[rule] | (later or {}) | changes.get(rule, {})
        told = START | (start or {}) if moment == 0 else told
        for place, (reading, factor) in enumerate(told.items()):
            jitter = 1 + 0.01 * math.cos(7 * trial + 3 * place + 11 * moment)
            rows.append(
                {"quantity": "sharpness", "rule": rule, "reading": reading,
                 "moment": moment, "trial": trial, "error": 0.0,
                 "value": factor * EDGES[rule] * jitter}
            )  # fmt: skip
    edges = [{"quantity": "edge", "rule": r, "value": v} for r, v in EDGES.items()]
    return PredictedAndMeasured(Rows(edges), Rows(rows))


# What is said, of which claim, in a counterfactual.
COUNTERFACTUALS = [
    ("FAILS", "batches-overestimate", made_rows(later={BATCHES: 0.3})),
    ("FAILS", "alike-at-the-start", made_rows(start={BATCHES: 0.2})),
    ("FAILS", "twofold-late", made_rows(stochastic={BATCHES: 0.6})),
    ("FAILS", "gap-grows", made_rows(start={BATCHES: 0.9})),
    ("FAILS", "samples-not-statistics", made_rows(later={TOGETHER: 2.3})),
    ("FAILS", "batches-together-suffice", made_rows(later={TOGETHER: 1.2})),
    ("FAILS", "constant-statistics-suffice", made_rows(later={FROZEN: 0.8})),
    ("FAILS", "running-statistics-suffice", made_rows(stochastic={RUNNING: 0.5})),
    ("FAILS", "descent-at-the-edge", made_rows(descent={WHOLE: 0.5})),
    ("FAILS", "batches-misplace-the-edge", made_rows(descent={BATCHES: 1.1})),
    ("FAILS", "stochastic-below-the-edge", made_rows(stochastic={WHOLE: 0.9})),
    ("FAILS", "stochastic-batches-at-the-edge", made_rows(stochastic={BATCHES: 0.5})),
    *(("HOLDS", claim.name, made_rows()) for claim in STUDY.claims),
]


@pytest.mark.parametrize(
    ("wanted", "name", "both"),
    COUNTERFACTUALS,
    ids=[f"{w[1]}-{w[0]}" for w in COUNTERFACTUALS],
)
def test_each_verdict_turns(wanted, name, both):
    ruling = claim_of(STUDY, name).rule(both)
    assert str(ruling.outcome) == wanted, ruling.judged.because


def test_every_claim_has_counterfactuals_both_ways():
    check_both_ways(NAME, COUNTERFACTUALS)


def test_rows_that_are_missing_decide_nothing():
    for claim in STUDY.claims:
        assert claim.rule(PredictedAndMeasured(Rows(), Rows())).outcome == "NOT RUN"


def test_factors_between_corners_by_hand():
    told = corners(made_rows())
    assert len(told) == 5
    found = told["single batches over all batches together, own statistics"]
    assert found.value == pytest.approx(2.5 / 1.02, rel=0.02)
    assert 0 < found.error < 0.05


def test_what_is_drawn_is_over_the_edge():
    row = table(made_rows()).only(rule=DESCENT, reading=WHOLE, moment=1.0)
    assert row["value"] == pytest.approx(0, abs=0.01)


# Two networks of two channels decide nothing: their verdicts are not checked.
TestSmoke = study_tests(NAME)
test_what_cannot_be_run_is_refused = refused(
    NAME,
    ({"moments": (0.0, 0.5)}, "both ends among them"),
    ({"stochastic_moments": (0.0, 1.0, 2.0)}, "shares of training"),
    ({"batch_size": 5000}, "smaller than the whole set"),
    ({"samples": 128}, "pass more, or 0 for all"),
)


TIGHT = replace(STUDY.presets["smoke"], tol=1e-6, n_seeds=1)
CELL = {"rule": DESCENT, "trial": 0, "moment": 1.0}


def tight(**changes):
    rows = measure.measure(replace(TIGHT, **changes), CELL)
    return {r["reading"]: r["value"] for r in rows.where(quantity="sharpness")}


@pytest.fixture(scope="module")
def found():
    return tight()


def test_a_mean_over_batches_is_above_all_of_them_together(found):
    """A convex function of a mean: a theorem where statistics are the same."""
    assert found[BATCHES] > found[TOGETHER]
    assert found[FROZEN_BATCHES] > found[FROZEN]


def dense(model, inputs, labels):
    """Return the Hessian of the mean cross-entropy, by plain double backward."""
    parameters = [*model.parameters()]
    loss = nn.functional.cross_entropy(model(inputs), labels)

    def flat(value, **settings):
        parts = torch.autograd.grad(value, parameters, **settings)
        return torch.cat([part.flatten() for part in parts])

    gradient = flat(loss, create_graph=True)
    return torch.stack([flat(entry, retain_graph=True) for entry in gradient])


def top(matrix):
    return float(torch.linalg.eigvalsh(matrix)[-1])


def test_readings_are_those_of_dense_hessians(found):
    config = TIGHT
    state = measure.trained(config, DESCENT, 0).states[config.steps]
    data = measure.samples_of(config, DESCENT)
    parts = measure.partition_of(config, data, trial=0)

    def whole_constant(model):
        """Running statistics of all samples, by one pass that forgets the old."""
        norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
        for norm in norms:
            norm.momentum = 1.0
        with torch.no_grad():
            model.train()(data[0])
        count = len(data[1]) * 64  # pixels of a digit; torch divides by one less
        for norm in norms:
            norm.running_var *= (count - 1) / count
        model.eval()

    def prepared(prepare):
        model = measure.model_of(config, state)
        prepare(model)
        return model

    # Equal batches that make up the set: of all together, the mean of their Hessians.
    own = [dense(prepared(nn.Module.train), *one) for one in parts]
    constant = [dense(prepared(whole_constant), *one) for one in parts]
    wanted = {
        WHOLE: top(dense(prepared(nn.Module.train), *data)),
        RUNNING: top(dense(prepared(nn.Module.eval), *data)),
        TOGETHER: top(sum(own) / len(own)),
        BATCHES: np.mean([top(one) for one in own]),
        FROZEN: top(sum(constant) / len(constant)),
        FROZEN_BATCHES: np.mean([top(one) for one in constant]),
    }
    assert found.keys() == wanted.keys()
    for reading, value in wanted.items():
        assert found[reading] == pytest.approx(value, rel=1e-5), reading
    assert len(set(np.round(list(wanted.values()), 6))) == 6


def test_chunks_and_single_precision_read_the_same(found):
    """As a long run on a GPU reads, in chunks that statistics run across."""
    again = tight(chunk=12, one_graph=12, double=False, tol=1e-3, corners=())
    assert again.keys() == {BATCHES, WHOLE}
    for reading, value in again.items():
        assert value == pytest.approx(found[reading], rel=2e-3), reading


@pytest.mark.gpu
def test_a_gpu_reads_the_same():
    """Before training, when weights are the same to the last digit."""
    config = replace(TIGHT, corners=(0.0, 1.0))
    cell = {**CELL, "moment": 0.0}
    here, there = (
        measure.measure(replace(config, device=device), cell).values()
        for device in ("cpu", "cuda")
    )
    np.testing.assert_allclose(there, here, rtol=1e-5)


def test_too_small_a_gpu_is_refused_before_anything_is_trained(monkeypatch):
    monkeypatch.setattr(measure, "_on_gpu", lambda config: True)
    monkeypatch.setattr(forecast, "available_bytes", lambda device: 2**14)
    monkeypatch.setattr(measure.training, "train_many", None)  # so it would fail
    measure.trained.cache_clear()
    with pytest.raises(MeasurementError, match=r"samples takes about .* GiB, allowed"):
        measure.measure(TIGHT, CELL)


def test_committed_rows_bring_their_own_edges():
    """Those of their rates, which are others than QUICK's."""
    quick = STUDY.predict(STUDY.presets["quick"])
    edges = STUDY.committed.run.predicted_and_measured(quick).predicted.where(
        quantity="edge"
    )
    found = {row["rule"]: row["value"] for row in edges}
    assert found == pytest.approx(EDGES)
    assert found != {row["rule"]: row["value"] for row in quick}


def test_a_long_run_has_the_ends_first():
    paper = STUDY.presets["paper"]
    listed = cells(paper)
    assert {cell["moment"] for cell in listed[:12]} == {0.0, 1.0}
    assert len(listed) == 3 * (len(paper.moments) + len(paper.stochastic_moments))
    assert paper.plan.depth == 20


@pytest.mark.parametrize(("device", "wanted"), [("cpu", "float32"), ("cuda", "tf32")])
def test_coarse_arithmetic_is_for_cards(device, wanted):
    config = replace(STUDY.presets["paper"], device=device)
    for rule in RULES:
        assert measure.recipe_of(config, rule, 1000).precision == wanted


def test_readings_say_themselves_what_convolutions_round_to(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    for coarse in (False, True):
        with measure._arithmetic(replace(TIGHT, coarse=coarse)):
            assert torch.backends.cudnn.allow_tf32 is coarse
    assert torch.backends.cudnn.allow_tf32 is True

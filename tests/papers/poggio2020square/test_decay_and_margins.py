"""Decay and margins: verdicts and counterfactuals."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.studies.counterfactuals import (
    claim_of,
    const,
    outcome_tests,
    refused,
    rows_of,
)
from theodolite.core import ConfigError, PredictedAndMeasured, Rows
from theodolite.studies import find
from theodolite_papers.poggio2020square.decay_and_margins.config import (
    PRESETS,
    Config,
    cells,
    runs,
)
from theodolite_papers.poggio2020square.decay_and_margins.measure import (
    memory,
    threshold,
)
from theodolite_papers.poggio2020square.shared.rows import rank_correlation
from theodolite_papers.poggio2020square.shared.split_classes import (
    flipped,
    split_classes,
)

STUDY = "decay_and_margins"
END = {"stage": "end"}
QUIET = {"stage": "end", "decay": 0.0}
FREE = {**QUIET, "start": 5.0}


def by_noise(slope):
    return lambda row: 3.0 + slope * row["noise"]


def scaled(base):
    return lambda row: row["value"] * base ** row["noise"]


# Verdict, claim, quantity, labels, change: a counterfactual.
COUNTERFACTUALS = [
    ("HOLDS", "small-norm-wide-margin", "rank", {"over": "all"}, const(-0.5)),
    ("FAILS", "small-norm-wide-margin", "rank", {"over": "all"}, const(0.5)),
    ("UNDECIDED", "small-norm-wide-margin", "rank",
     {"of": "mean_margin", "over": "all"}, const(0.5)),
    ("HOLDS", "small-norm-small-error", "rank", {"over": "all"}, const(1.0)),
    ("FAILS", "small-norm-small-error", "rank", {"over": "all"}, const(-1.0)),
    ("UNDECIDED", "small-norm-small-error", "rank",
     {"over": "all", "reading": "last"}, const(-1.0)),
    ("HOLDS", "whatever-made-the-norm", "rank", {"of": "test_error"}, const(2.0)),
    ("FAILS", "whatever-made-the-norm", "rank", {"over": "starts"}, const(-2.0)),
    ("FAILS", "whatever-made-the-norm", "rank", {"over": "decays"}, const(-2.0)),
    ("HOLDS", "decay-keeps-margins-apart", "margin_spread", END,
     lambda row: 0.1 + row["decay"]),
    ("FAILS", "decay-keeps-margins-apart", "margin_spread", END,
     lambda row: 0.2 - row["decay"]),
    ("FAILS", "decay-keeps-margins-apart", "margin_spread",
     {**END, "decay": 0.01, "start": 1.0}, const(2.0)),
    ("HOLDS", "enough-decay-forgets", "memory", END,
     lambda row: 0.0 if row["decay"] else 0.4),
    ("FAILS", "enough-decay-forgets", "memory", END, const(0.0)),
    ("FAILS", "enough-decay-forgets", "memory", END, const(0.9)),
    ("FAILS", "enough-decay-forgets", "norm", END, const(7.0)),
    ("HOLDS", "enough-is-a-matter-of-time", "threshold", {"level": 0.5},
     lambda row: 1 / row["epoch"]),
    ("FAILS", "enough-is-a-matter-of-time", "threshold", {"level": 0.5}, const(0.01)),
    ("HOLDS", "errors-forget-too", "test_error", {},
     lambda row: 0.1 + 0.01 * row["start"] * (row["decay"] == 0)),
    ("FAILS", "errors-forget-too", "test_error", {"decay": 0.01, "start": 5.0},
     const(0.6)),
    ("FAILS", "errors-forget-too", "test_error", {"decay": 0.0, "start": 5.0},
     const(0.0)),
    ("HOLDS", "noise-ends-interpolation", "train_loss", QUIET,
     lambda row: 0.1 * row["noise"] or 0.001),
    ("FAILS", "noise-ends-interpolation", "train_loss", QUIET,
     lambda row: 0.0001 if row["noise"] else 0.001),
    ("FAILS", "noise-ends-interpolation", "train_loss", QUIET,
     lambda row: 0.002 if row["noise"] else 0.001),
    ("HOLDS", "noise-ends-interpolation", "train_loss", QUIET,
     lambda row: 0.1 * (1 + row["noise"]) if row["noise"] or row["start"] > 1
     else 0.001),
    ("HOLDS", "noise-lowers-norms-in-training", "norm", FREE, scaled(0.01)),
    ("FAILS", "noise-lowers-norms-in-training", "norm", FREE, scaled(100.0)),
    ("UNDECIDED", "noise-lowers-norms-in-training", "norm",
     {**FREE, "reading": "last"}, scaled(100.0)),
    ("HOLDS", "noise-raises-the-sum", "mean_margin", FREE, scaled(100.0)),
    ("FAILS", "noise-raises-the-sum", "mean_margin", FREE, scaled(0.01)),
    ("HOLDS", "noise-betters-errors", "test_error", FREE, by_noise(-1.0)),
    ("FAILS", "noise-betters-errors", "test_error", FREE, by_noise(1.0)),
    ("HOLDS", "noise-does-not-forget", "memory", {**END, "decay": 0.0}, const(0.5)),
    ("FAILS", "noise-does-not-forget", "memory", {**END, "noise": 0.3}, const(0.0)),
    ("FAILS", "noise-does-not-forget", "norm", {**END, "decay": 0.01},
     lambda row: 1e9 * row["value"]),
]  # fmt: skip


def test_what_three_trials_tell_for_sure(smoke_root):
    """Decay lowers norms and forgets the start; its rival does nothing."""
    _, both = rows_of(smoke_root, STUDY)
    rows = both.measured.where(stage="end", reading="product", noise=0.0)
    for trial in rows.levels("trial"):
        kept = rows.where(trial=trial)
        free, held = (
            kept.value(quantity="norm", decay=decay, start=5.0) for decay in (0.0, 0.1)
        )
        assert free > 100 * held
        assert kept.value(quantity="memory", decay=0.0) > 0.5
        assert abs(kept.value(quantity="memory", decay=0.1)) < 0.3


TestStudy = outcome_tests(STUDY, COUNTERFACTUALS, copies=4)


@pytest.mark.parametrize(("power", "wanted"), [(1, "HOLDS"), (-1, "UNDECIDED")])
def test_norms_with_batch_norms_folded_in_are_a_reading(power, wanted, smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    measured = Rows(
        {**r, "value": 1.0 + 0.01 * r["trial"], "error": 1e-9}
        if r["quantity"] == "rank" and r["of"] == "test_error" else r
        for r in both.measured
    )  # fmt: skip
    folded = [
        {**r, "quantity": "norm_at", "epoch": epoch, "reading": reading,
         "value": (r["value"] * (1 + 0.1 * math.cos(7 * r["trial"] + 9 * r["start"])))
         ** (power if reading == "folded" else 1)}
        for r in both.measured.where(quantity="test_error")
        for epoch in (60, 120) for reading in ("folded", "product")
    ]  # fmt: skip
    there = PredictedAndMeasured(both.predicted, measured + folded)
    ruling = claim_of(study, "small-norm-small-error").rule(there)
    assert str(ruling.outcome) == wanted, ruling.judged.because


def test_a_run_that_diverged_leaves_numbers_open():
    assert math.isnan(memory({0.1: 1.0, 1.0: math.nan, 5.0: 2.0}))
    assert math.isnan(threshold({0.0: 1.0, 0.1: math.nan}, 0.5)[0])


def test_a_threshold_on_the_edge_says_so():
    falling = {0.0: 1.0, 0.01: 0.9, 0.1: 0.8}
    assert threshold(falling, 0.5) == (0.1, True)
    assert threshold({**falling, 0.01: 0.2}, 0.5) == (0.01, True)


def test_ranks_of_what_does_not_vary_are_open():
    assert math.isnan(rank_correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))
    assert math.isnan(rank_correlation([1.0, 2.0], [1.0, 2.0]))


def test_the_paper_scale_has_all_runs():
    config = PRESETS["paper"]
    assert len(cells(config)) == 10
    assert len(runs(config)) == 28
    assert config.epochs_seen[-1] == 1000


@pytest.mark.parametrize("study", [STUDY, "collapse_everywhere"])
def test_runs_that_diverge_leave_every_claim_open(study):
    """The rival leaves them out, and judges those that are left."""
    named = find(study).study
    fast = {"rate": 1e30, "epochs": 20, "n_seeds": 1, "width": 4}
    config = replace(named.presets["smoke"], **fast)
    rows = Rows.joined(named.measure(config, cell) for cell in named.cells(config))
    both = PredictedAndMeasured(named.predict(config), rows)
    for claim in named.claims:
        # A head that is solved for needs no training.
        solved = claim.name == "at-each-global-minimum"
        wanted = "FAILS" if solved else "UNDECIDED"
        assert str(claim.rule(both).outcome) == wanted
    for drawing in named.drawings:
        drawing.draw(drawing.table(both))
    assert len(rows.where(lambda row: row["value"] is None, quantity="norm"))


def test_splits_hold_out_what_is_not_trained_on():
    split = split_classes("mnist5k", (9, 4), each=100, coarse=4, trial=1)
    np.testing.assert_allclose(np.linalg.norm(split.inputs, axis=1), 1, rtol=1e-12)
    assert split.inputs.shape == (200, 49)
    assert np.bincount(split.test_labels).tolist() == [400, 400]
    together = np.concatenate([split.inputs, split.test_inputs])
    assert len(np.unique(together, axis=0)) == 1000
    other = split_classes("mnist5k", (9, 4), each=100, coarse=4, trial=2)
    assert abs(split.inputs - other.inputs).max() > 0.1


def test_classes_keep_the_order_asked_for():
    one, other = (
        split_classes("mnist5k", pair, each=20, coarse=7, trial=0)
        for pair in ((9, 4), (4, 9))
    )
    nines, too = (
        np.concatenate([s.inputs[s.labels == k], s.test_inputs[s.test_labels == k]])
        for s, k in ((one, 0), (other, 1))
    )
    np.testing.assert_array_equal(np.unique(nines, axis=0), np.unique(too, axis=0))
    few = split_classes("mnist5k", (9, 4), each=20, coarse=7, trial=0, held=5)
    assert np.bincount(few.test_labels).tolist() == [5, 5]


def test_flipped_labels_are_other_classes():
    labels = np.arange(3000) % 3
    changed = flipped(labels, 0.2, trial=0)
    assert 0.15 < np.mean(changed != labels) < 0.25
    assert np.unique(changed).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"each": 600, "coarse": 4}, "600 samples of class 4"),
        ({"each": 10, "coarse": 3}, "coarse is 3"),
    ],
)
def test_splits_that_cannot_be(settings, words):
    with pytest.raises(ConfigError, match=words):
        split_classes("mnist5k", (4, 9), trial=0, **settings)


test_settings_that_are_refused = refused(
    Config,
    ({"classes": (1, 2, 3)}, "classes are"),
    ({"decays": (0.0, 0.1, 0.2, 0.3)}, "decays are"),
    ({"starts": (0.1, 5.0)}, "starts are"),
    ({"noises": (0.0, 1.0)}, "noises are"),
    ({"epochs": 10}, "epochs is 10"),
)

"""Figures 1 to 12: verdicts and counterfactuals."""

import numpy as np
import pytest

from tests.studies.counterfactuals import (
    claim_of,
    const,
    each_case,
    refused,
    rows_of,
    said,
    scale,
    study_tests,
    with_change,
)
from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows
from theodolite.studies import find
from theodolite_papers.poggio2020square.trained_norms.config import (
    CONDITIONS,
    Config,
    runs,
)
from theodolite_papers.poggio2020square.trained_norms.measure import (
    even_epochs,
    load_samples,
    reading_epochs,
)

STUDY = "trained_norms"
# What is alike in all runs where everything is as the paper says.
AS_PRINTED = {
    "alive": 1.0,
    "rho_fall": 0.01,
    "mean_abs_f": 0.01,
    "largest_f": 0.01,
    "folded_rho": 100.0,
    "ratio": 1.1,
    "ratio_limit": 1.1,
    "ratio_gap": 0.0,
    "first_margin": 0.1,
    "output_margin": 1.0,
    "early_spread": 0.5,
    "late_spread": 0.05,
    "train_loss": 0.001,
}
# Spread over networks; that of all others is a thousandth.
CHANCE = {"alive": 0.0, "rho_start": 0.0, "train_loss": 1e-5, "rho_end": 0.1}
CHANCE |= {"mean_abs_f": 1e-5, "largest_f": 1e-5}
# Claim, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("separable-early", "first_margin", {"condition": "bn", "start": 0.1}, const(-0.1)),
    ("norm-grows-from-small-starts", "rho_fall", {"start": 0.1}, const(0.9)),
    ("large-norms-shrink", "rho_end", {"condition": "bn", "start": 5.0}, const(700.0)),
    (
        "decay-forgets-the-start",
        "rho_end",
        {"condition": "bn_wd", "start": 5.0},
        scale(2.0),
    ),
    ("decay-forgets-the-start", "mean_abs_f", {"condition": "bn_wd", "start": 1.0},
     scale(0.5)),
    ("others-remember", "rho_end", {"condition": "bn", "start": 5.0}, scale(0.2)),
    ("ratio-at-rest", "ratio_gap", {"condition": "bn_wd"}, const(0.2)),
    ("margins-are-the-inverse-norm", "late_spread", {"condition": "plain"}, const(0.3)),
    ("margins-are-the-inverse-norm", "train_loss", {"condition": "bn"}, const(0.1)),
    ("norm-grows-from-small-starts", "last_norm_stage", {"start": 0.1, "epoch": 50},
     const(9.0)),
    ("decay-forgets-the-start", "folded_rho_stage",
     {"condition": "bn_wd", "start": 5.0}, scale(2.0)),
    ("large-norms-shrink", "last_norm_stage",
     {"condition": "bn", "start": 5.0, "epoch": 100}, const(6.0)),
    ("one-run-is-typical", "test_error",
     {"condition": "bn", "start": 0.1, "trial": 1}, scale(1.8)),
    ("margins-are-the-inverse-norm", "output_margin", {"condition": "bn"}, const(0.8)),
    ("margins-narrow", "late_spread", {"condition": "bn_wd"}, const(0.9)),
    ("loss-approaches-zero", "train_loss", {"condition": "bn"}, const(0.1)),
    ("start-is-not-zero", "rho_start", {"condition": "bn"}, const(0.0)),
    ("figure-1-has-decay", "rho_end", {"condition": "bn_fast"}, const(50.0)),
    (
        "one-run-is-typical",
        "rho_end",
        {"condition": "bn", "start": 0.1, "trial": 1},
        scale(2.0),
    ),
    (
        "small-starts-generalise",
        "test_error",
        {"condition": "plain", "start": 5.0},
        const(0.4),
    ),
    ("outputs-far-below-one", "largest_f", {}, const(0.7)),
    ("outputs-far-below-one", "last_norm_stage", {}, scale(100.0)),
    ("decay-forgets-the-start", "test_error", {"condition": "bn_wd", "start": 5.0},
     scale(2.0)),
    ("others-remember", "mean_abs_f", {}, const(0.01)),
    ("every-run-trains", "train_loss", {"condition": "plain", "trial": 1}, const(1.0)),
    ("wide-layers-cannot-rest", "train_loss", {"family": "dense"}, const(None)),
]  # fmt: skip


def as_printed():
    """Return rows of a counterfactual in which all that the paper says is so."""
    rows, chance = [], np.random.default_rng(0)
    for family in ("dense", "convolutional"):
        for condition, start in runs():
            one = CONDITIONS[condition]
            end = 50.0 if condition == "bn_wd" else 50.0 * (1 + start)
            end = end if start < one.starts[-1] else min(end, start**4 / 2)
            remembers = condition != "bn_wd" and start > one.starts[0]
            own = {
                "rho_start": start**4,
                "rho_end": end,
                "test_error": 0.1 + 0.01 * start * remembers,
                **AS_PRINTED,
                "mean_abs_f": 0.004 if remembers else 0.01,
            }
            last = 1.0 if condition == "bn_wd" else 0.5 * (1 + start)
            paths = {
                "rho_stage": (start**4, end),
                "last_norm_stage": (start, last),
                "folded_rho_stage": (10 * start**4, 10 * end),
            }
            rows += [
                {
                    "quantity": name,
                    "family": family,
                    "condition": condition,
                    "start": start,
                    "trial": trial,
                    "epoch": epoch,
                    "value": low
                    * (high / low) ** (epoch / 100)
                    * (1 + 1e-3 * chance.normal()),
                    "error": 0.0,
                }
                for trial in range(3)
                for name, (low, high) in paths.items()
                for epoch in (0, 50, 100)
            ]
            rows += [
                {
                    "quantity": name,
                    "family": family,
                    "condition": condition,
                    "start": start,
                    "trial": trial,
                    "value": value + CHANCE.get(name, 1e-3) * chance.normal(),
                    "error": 0.0,
                }
                for trial in range(3)
                for name, value in own.items()
            ]
    study = find(STUDY).study
    theory = study.predict(study.presets["smoke"])
    # Of the dense networks with decay theory says that they cannot be trained.
    wide = [
        {**row, "value": 2.0 if row["family"] == "dense" else 0.5}
        for row in theory.where(quantity="instability", condition="bn_wd")
    ]
    theory = theory.where(quantity="rho_start") + wide
    return study, PredictedAndMeasured(theory, Rows(rows))


def test_all_holds_in_rows_as_printed_except_the_errata():
    study, both = as_printed()
    verdicts = {claim.name: said(claim.rule(both)) for claim in study.claims}
    errata = {"start-is-not-zero", "figure-1-has-decay"}
    # The paper knows of no width beyond which nothing trains.
    assert verdicts.pop("wide-layers-cannot-rest") == ("FAILS", None)
    # The last layer's norm falls from 5 there, so that it cannot be far above 1.
    assert verdicts.pop("outputs-far-below-one") == ("UNDECIDED", None)
    for name, pair in verdicts.items():
        wanted = ("FAILS", "HOLDS") if name in errata else ("HOLDS", None)
        assert pair == wanted, name


@each_case(COUNTERFACTUALS)
def test_each_verdict_turns_on_a_counterfactual(case):
    name, quantity, labels, change = case
    study, both = as_printed()
    claim = claim_of(study, name)
    after = claim.rule(with_change(both, "m", quantity, change, **labels))
    assert said(after) != said(claim.rule(both))


TestStudy = study_tests(STUDY, COUNTERFACTUALS, check=None)


def test_starts_that_never_trained_are_left_out():
    """Only a run of the largest start that trained says what large starts do."""
    study, both = as_printed()
    dead = {"condition": "plain", "start": 30.0}
    gone = Rows(
        row
        for row in with_change(both, "m", "alive", const(0.0), **dead).measured
        if row["quantity"] in ("alive", "rho_start")
        or any(row[key] != value for key, value in dead.items())
    )
    claim = claim_of(study, "others-remember")
    assert said(claim.rule(PredictedAndMeasured(both.predicted, gone))) == (
        "HOLDS",
        None,
    )
    flat = with_change(
        PredictedAndMeasured(both.predicted, gone),
        "m",
        ("rho_end", "mean_abs_f", "test_error"),
        lambda row: {"rho_end": 0.1 * row["value"]}.get(
            row["quantity"], 0.01 if row["quantity"] == "mean_abs_f" else 0.1
        ),
        start=15.0,
    )
    assert said(claim.rule(flat)) == ("FAILS", None)


@pytest.mark.parametrize(
    "name",
    ["norm-grows-from-small-starts", "large-norms-shrink", "outputs-far-below-one"],
)
def test_a_condition_of_which_nothing_trained_leaves_a_claim_open(name):
    """What is said of all figures is not judged on some of them."""
    study, both = as_printed()
    dead = with_change(both, "m", "alive", const(0.0), condition="bn_wd").measured
    gone = dead.where(
        lambda row: row["condition"] != "bn_wd" or row["quantity"] == "alive"
    )
    ruling = claim_of(study, name).rule(PredictedAndMeasured(both.predicted, gone))
    assert said(ruling) == ("UNDECIDED", None)


def test_verdicts_at_smoke_that_chance_does_not_touch(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    start = claim_of(study, "start-is-not-zero")
    assert said(start.rule(both)) == ("FAILS", "HOLDS")
    alive = both.measured.where(quantity="alive")
    assert len(alive) == 2 * len(runs()) * study.presets["smoke"].n_seeds


def test_gaps_are_those_of_ratios_to_their_limits(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    gaps = both.measured.where(quantity="ratio_gap", condition="bn_wd").values()
    limits = both.measured.where(quantity="ratio_limit", condition="bn_wd").values()
    ratios = both.measured.where(quantity="ratio", condition="bn_wd").values()
    np.testing.assert_allclose(ratios / limits - 1, gaps, rtol=1e-9, atol=1e-12)


def test_figures_are_drawn_from_rows(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    with figures.house_style():
        for drawing in study.drawings[3:]:
            assert drawing.draw(drawing.table(both)).axes


def test_the_committed_run_diverged_where_theory_says_and_only_there():
    committed = find(STUDY).study.committed
    assert committed is not None
    both = committed.run.predicted_and_measured(Rows())
    assert both is not None
    alive = both.measured.where(quantity="alive")
    seen = {
        (row["family"], row["condition"]): row["value"] > 1
        for row in both.predicted.where(quantity="instability")
        if len(alive.where(family=row["family"]))
    }
    assert len(seen) == 16
    for (family, condition), unstable in seen.items():
        ends = alive.where(family=family, condition=condition).values()
        assert set(ends) == {0.0 if unstable else 1.0}, (family, condition)


def test_samples_are_unit_images_of_two_classes():
    samples, shape = load_samples("digits", (3, 8))
    assert shape == (1, 8, 8)
    norms = np.linalg.norm(samples.inputs.numpy(), axis=1)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-6)
    assert set(samples.labels.tolist()) == {-1.0, 1.0}
    assert samples.tested


def test_the_last_epochs_are_all_read():
    epochs = reading_epochs(1000, even_epochs(1000, 10))
    assert epochs[-5:] == (996, 997, 998, 999, 1000)
    assert {0, 1, 10, 100, 900} <= set(epochs)


def test_width_decides_what_is_stable():
    """The threshold is 117 units: 32 are below, 256 and 16 x 32 above."""
    study = find(STUDY).study
    paper = study.predict(study.presets["paper"])
    unstable_by = {
        (row["family"], row["condition"]): row["value"] > 1
        for row in paper.where(quantity="instability")
    }
    assert {key for key, unstable in unstable_by.items() if unstable} == {
        (family, condition)
        for family in ("dense", "convolutional")
        for condition in ("bn_wd", "bn_fast")
    }
    assert ("narrow_dense", "bn_wd") in unstable_by
    assert ("narrow_dense", "bn") not in unstable_by


test_configs_that_make_no_sense_are_refused = refused(
    Config,
    ({"epochs": 5}, "epochs are (5, "),
    ({"readings": 2}, "readings is 2"),
    ({"classes": (3, 3)}, "two different"),
)

"""Figure 1(d): verdicts and counterfactuals."""

import numpy as np
import pytest

from tests.studies.counterfactuals import (
    claim_of,
    const,
    each_case,
    rows_of,
    said,
    scale,
    study_tests,
    with_change,
)
from theodolite.core import ConfigError
from theodolite.theory import scalar_norm_sizes
from theodolite_papers.littwin2016loss.batch_norm_scales.config import Config
from theodolite_papers.littwin2016loss.shared.layerwise_config import spaced, stages

STUDY = "batch_norm_scales"


def rising(row):
    """Scales that grow with the step, a little differently in every network."""
    grown = 0.01 * row["step"] * (1 + 0.001 * row["layer"] ** 2)
    return 1 + grown * (1 + 0.1 * row["trial"])


def falling(row):
    return 3 - rising(row)


def apart(row):
    """Scales that grow in all layers but the first."""
    return rising(row) if row["layer"] > 1 else 1 - 0.001 * row["trial"]


def one_shrinks(row):
    """Scales of which one layer's falls, while their mean grows."""
    return (
        rising(row)
        if row["layer"] != 3
        else 1 - 0.005 * row["step"] * (1 + 0.1 * row["trial"])
    )


def falls_first(row):
    """Scales that fall at first and end above their start."""
    return 1 + 0.01 * (row["step"] - 30 * (row["step"] > 0)) * (1 + 0.1 * row["trial"])


def last_apart(row):
    """Scales of which the last layer's is the furthest from the rest."""
    shown = 0.5 * (row["layer"] == 5) + 0.1 * (row["layer"] == 1)
    return 1 + shown * (1 + 0.01 * row["trial"])


def small_readout_differs(row):
    """First layers that stand out, only where the readout starts at its usual size."""
    return apart(row) if row["readout"] == 1 else last_apart(row)


def dips_at_second(row):
    """Deviations of which the second is below the first, and all else rises."""
    return (0.58, 0.57, 0.83, 1.0)[row["layer"] - 1] + 0.001 * row["trial"]


def one_a_layer(row):
    """Increments of one."""
    return 1 + 0.01 * np.cos(3 * row["trial"] + row["layer"])


def as_derived(row):
    """Increments of the wide limit."""
    sizes = np.diff(scalar_norm_sizes(row["layer"]).square, prepend=0.0)
    return float(sizes[-1]) * one_a_layer(row)


# Claim, quantity, labels, change, and what is said of it then.
COUNTERFACTUALS = [
    ("squares-add-up", "increment", {}, one_a_layer, ("HOLDS", "FAILS")),
    ("squares-add-up", "increment", {}, as_derived, ("FAILS", "HOLDS")),
    ("squares-add-up", "increment", {}, scale(1.5), ("FAILS", "FAILS")),
    ("deviations-grow", "deviation", {}, const(1.0), ("UNDECIDED", None)),
    ("deviations-grow", "deviation", {},
     lambda row: 1 / row["layer"] + 0.01 * row["trial"], ("FAILS", None)),
    ("deviations-grow", "deviation", {}, dips_at_second, ("HOLDS", None)),
    ("deviations-grow", "deviation", {},
     lambda row: (2.0, 0.5, 0.6, 0.7)[row["layer"] - 1] + 0.001 * row["trial"],
     ("FAILS", None)),
    ("scales-grow", "scale", {}, rising, ("HOLDS", None)),
    ("scales-grow", "scale", {}, falling, ("FAILS", None)),
    ("scales-grow", "scale", {}, one_shrinks, ("UNDECIDED", None)),
    ("later-stages-higher", "scale", {}, rising, ("HOLDS", None)),
    ("later-stages-higher", "scale", {}, falls_first, ("FAILS", None)),
    ("first-layer-differs", "scale", {}, apart, ("HOLDS", None)),
    ("first-layer-differs", "scale", {}, last_apart, ("FAILS", None)),
    ("first-layer-differs", "scale", {}, small_readout_differs, ("UNDECIDED", None)),
    ("unskipped-scale-grows", "scale", {}, rising, ("HOLDS", None)),
    ("unskipped-scale-grows", "scale", {}, falling, ("FAILS", None)),
    ("scales-grow-late", "scale", {}, rising, ("HOLDS", None)),
    ("scales-grow-late", "scale", {}, one_shrinks, ("FAILS", None)),
]  # fmt: skip


TestStudy = study_tests(STUDY, COUNTERFACTUALS, check=None)


@each_case(COUNTERFACTUALS)
def test_each_verdict_turns_on_a_counterfactual(case, smoke_root):
    claim, quantity, labels, change, wanted = case
    study, both = rows_of(smoke_root, STUDY)
    there = with_change(both, "m", quantity, change, **labels)
    there = with_change(there, "m", "train_loss", const(0.1))
    assert said(claim_of(study, claim).rule(there)) == wanted


def test_a_reading_that_turns_the_verdict_is_named(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    there = with_change(both, "m", "scale", small_readout_differs)
    there = with_change(there, "m", "train_loss", const(0.1))
    judged = claim_of(study, "first-layer-differs").rule(there).judged
    assert "depends on the reading" in judged.because
    assert "readout × 0.02" in judged.because


def test_runs_above_the_loss_of_a_guess_do_not_count(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    there = with_change(both, "m", "train_loss", const(9.0))
    ruling = claim_of(study, "scales-grow").rule(there)
    assert str(ruling.outcome) == "UNDECIDED"
    assert "30 of 30 runs died" in ruling.died


def test_networks_learn(smoke_root):
    """Chance is to err on 49 of 50."""
    _, both = rows_of(smoke_root, STUDY)
    errors = both.measured.where(quantity="test_error").values()
    assert len(errors) == 30
    assert np.median(errors) < 0.97


def test_readings_are_spread_evenly_and_early():
    assert stages(1000) == (0, 1, 10, 62, 125, 188, 250, 500, 750, 1000)
    assert spaced(3, 3) == (0, 1, 2, 3)


def test_too_few_updates_are_refused():
    with pytest.raises(ConfigError, match="at least 16"):
        Config(updates=8)

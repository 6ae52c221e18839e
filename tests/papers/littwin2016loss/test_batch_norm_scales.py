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
from theodolite_papers.littwin2016loss.shared.layerwise_config import spaced

STUDY = "batch_norm_scales"
# Of networks that were trained for forty steps only.
VERDICTS = {
    "squares-add-up": ("FAILS", "UNDECIDED"),
    "scales-grow": "FAILS",
    "scales-grow-on-average": "FAILS",
    "later-stages-higher": "FAILS",
    "first-layer-differs": "UNDECIDED",
    "unskipped-scale-grows": "FAILS",
    "scales-grow-late": "FAILS",
    "standard-scales-grow": "FAILS",
    "standard-first-layer-differs": "UNDECIDED",
}
SCALAR, BATCH = {"norm": "scalar"}, {"norm": "batch"}


def rising(row):
    """Scales that grow with the stage, a little differently in every network."""
    grown = 0.1 * row["stage"] + 0.001 * row["layer"] ** 2
    return 1 + grown * (1 + 0.1 * row["trial"])


def apart(row):
    """Scales that grow in all layers but the first."""
    return rising(row) if row["layer"] > 1 else 1 - 0.001 * row["trial"]


def one_shrinks(row):
    """Scales of which one layer's falls, while their mean grows."""
    return (
        rising(row)
        if row["layer"] != 3
        else 1 - 0.05 * row["stage"] * (1 + 0.1 * row["trial"])
    )


def last_apart(row):
    """Scales of which the last layer's is the furthest from the rest."""
    return rising(row) + 0.5 * (row["layer"] == 5) + 0.1 * (row["layer"] == 1)


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
    ("scales-grow", "scale", SCALAR, rising, ("HOLDS", None)),
    ("scales-grow", "scale", SCALAR, one_shrinks, ("FAILS", None)),
    ("scales-grow-on-average", "scale", SCALAR, one_shrinks, ("HOLDS", None)),
    ("later-stages-higher", "scale", SCALAR, rising, ("HOLDS", None)),
    ("first-layer-differs", "scale", SCALAR, apart, ("HOLDS", None)),
    ("first-layer-differs", "scale", SCALAR, rising, ("FAILS", None)),
    ("first-layer-differs", "scale", SCALAR, last_apart, ("FAILS", None)),
    ("unskipped-scale-grows", "scale", SCALAR, rising, ("HOLDS", None)),
    ("scales-grow-late", "scale", SCALAR, rising, ("HOLDS", None)),
    ("standard-scales-grow", "scale", BATCH, rising, ("HOLDS", None)),
    ("standard-first-layer-differs", "scale", BATCH, apart, ("HOLDS", None)),
]  # fmt: skip


TestStudy = study_tests(STUDY, COUNTERFACTUALS, VERDICTS, check=None)


@each_case(COUNTERFACTUALS)
def test_each_verdict_turns_on_a_counterfactual(case, smoke_root):
    claim, quantity, labels, change, wanted = case
    study, both = rows_of(smoke_root, STUDY)
    there = with_change(both, "m", quantity, change, **labels)
    assert said(claim_of(study, claim).rule(there)) == wanted


def test_networks_learn(smoke_root):
    """Chance is to err on 49 of 50."""
    _, both = rows_of(smoke_root, STUDY)
    errors = both.measured.where(quantity="test_error").values()
    assert len(errors) == 6
    assert errors.max() < 0.97


def test_readings_are_spaced_in_the_logarithm():
    assert spaced(1000, 4) == (0, 1, 10, 100, 1000)
    assert spaced(3, 3) == (0, 1, 2, 3)


def test_too_few_readings_are_refused():
    with pytest.raises(ConfigError, match="at least 3 readings"):
        Config(readings=2)

"""Figure 1(e): verdicts and counterfactuals."""

import pytest

from tests.studies.counterfactuals import (
    claim_of,
    const,
    each_case,
    rows_of,
    said,
    study_tests,
    with_change,
)
from theodolite.core import ConfigError
from theodolite_papers.littwin2016loss.weight_norm_growth.config import RUN, Config

STUDY = "weight_norm_growth"


def rising(row):
    """Norms that grow with the step, a little differently in every network."""
    return 10 + row["step"] * (1 + 0.01 * row["trial"])


def late(row):
    """Norms that fall first, and end above their start."""
    return 10 + (row["step"] - 30 * (row["step"] > 0)) * (1 + 0.01 * row["trial"]) / 8


def falling(row):
    return 1000 - row["step"] * (1 + 0.01 * row["trial"])


def by_readout(row):
    """Norms that grow only where the readout starts at its usual size."""
    return rising(row) if row["readout"] == 1 else falling(row)


# Claim, quantity, change, and what is said of it then.
COUNTERFACTUALS = [
    ("norm-grows", "norm", rising, "HOLDS"),
    ("norm-grows", "norm", falling, "FAILS"),
    ("norm-grows", "norm", by_readout, "UNDECIDED"),
    ("norm-grows-steadily", "norm", rising, "HOLDS"),
    ("norm-grows-steadily", "norm", late, "FAILS"),
    ("every-layer-grows", "layer_norm", rising, "HOLDS"),
    ("every-layer-grows", "layer_norm", falling, "FAILS"),
    ("growth-is-first-order", "radial", rising, "HOLDS"),
    ("growth-is-first-order", "tangential", lambda row: 1e5 * rising(row), "FAILS"),
]


TestStudy = study_tests(STUDY, COUNTERFACTUALS, check=None)


@each_case(COUNTERFACTUALS)
def test_each_verdict_turns_on_a_counterfactual(case, smoke_root):
    claim, quantity, change, wanted = case
    study, both = rows_of(smoke_root, STUDY)
    there = with_change(both, "m", quantity, change)
    there = with_change(there, "m", "train_loss", const(0.1))
    assert said(claim_of(study, claim).rule(there)) == (wanted, None)


def test_the_two_orders_add_up_to_the_change(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    rows = both.measured
    for row in rows.where(quantity="norm", step=64):
        labels = {k: row[k] for k in RUN}
        start = rows.value(quantity="norm", step=0, **labels)
        parts = [
            rows.value(quantity=part, step=64, **labels)
            for part in ("radial", "tangential")
        ]
        change = row["value"] ** 2 - start**2
        assert change == pytest.approx(sum(parts), abs=1e-9)
        assert abs(change) > 1e-3


def test_a_start_of_no_size_is_refused():
    with pytest.raises(ConfigError, match="all positive"):
        Config(init_scales=(0.0,))

"""Figure 1(e): what is said of it, and worlds in which each verdict turns."""

import pytest

from tests.studies.worlds import (
    check_all_turn,
    check_errors,
    claim_of,
    in_world,
    rows_of,
    said,
)
from theodolite.core import ConfigError
from theodolite.studies.littwin2016loss.weight_norm_growth.config import Config

STUDY = "weight_norm_growth"


def rising(row):
    """Norms that grow with the stage, a little differently in every network."""
    return 10 + row["stage"] * (1 + 0.01 * row["trial"])


def late(row):
    """Norms that fall first, and end above their start."""
    return 10 + (0, -1, 1, 3)[row["stage"]] * (1 + 0.1 * row["trial"])


def falling(row):
    return 10 - row["stage"] * (1 + 0.01 * row["trial"])


# Claim, quantity, change, and what is said of it then.
WORLDS = [
    ("norm-grows", "norm", rising, "HOLDS"),
    ("norm-grows", "norm", falling, "FAILS"),
    ("norm-grows-steadily", "norm", rising, "HOLDS"),
    ("norm-grows-steadily", "norm", late, "FAILS"),
    ("every-layer-grows", "layer_norm", rising, "HOLDS"),
    ("every-layer-grows", "layer_norm", falling, "FAILS"),
    ("growth-is-first-order", "radial", rising, "HOLDS"),
    ("growth-is-first-order", "tangential", rising, "FAILS"),
]


def test_every_claim_has_a_world():
    check_all_turn(STUDY, WORLDS)


def test_rows_carry_their_error(smoke_root):
    check_errors(smoke_root, STUDY)


@pytest.mark.parametrize(
    "world", WORLDS, ids=[f"{w[0]}-{i}" for i, w in enumerate(WORLDS)]
)
def test_each_verdict_turns_in_another_world(world, smoke_root):
    claim, quantity, change, wanted = world
    study, roads = rows_of(smoke_root, STUDY)
    there = in_world(roads, "m", quantity, change)
    assert said(claim_of(study, claim).rule(there)) == (wanted, None)


def test_the_two_orders_add_up_to_the_change(smoke_root):
    _, roads = rows_of(smoke_root, STUDY)
    rows = roads.measured
    for row in rows.where(quantity="norm", stage=3):
        labels = {"init_scale": row["init_scale"], "trial": row["trial"]}
        start = rows.value(quantity="norm", stage=0, **labels)
        parts = [
            rows.value(quantity=part, stage=3, **labels)
            for part in ("radial", "tangential")
        ]
        change = row["value"] ** 2 - start**2
        assert change == pytest.approx(sum(parts), abs=1e-9)
        assert abs(change) > 1e-3


def test_a_start_of_no_size_is_refused():
    with pytest.raises(ConfigError, match="all positive"):
        Config(init_scales=(0.0,))

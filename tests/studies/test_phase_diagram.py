"""The phase diagram: its verdicts, and worlds in which each turns."""

import pytest

from tests.studies.worlds import (
    check_all_turn,
    check_errors,
    check_world,
    const,
    rows_of,
)
from theodolite.core import Rows
from theodolite.studies import find
from theodolite.studies.li2016demystifying.phases import (
    DIVERGES,
    STUCK,
    TRAINS,
    phase_of,
)

NAME = "phase_diagram"

# Claim, side, quantity, labels, change.
WORLDS = [
    ("phases-foretold", "m", "measured", {}, const(TRAINS)),
    ("phases-foretold", "p", "predicted", {}, const(TRAINS)),
    ("most-foretold", "p", "predicted", {}, None),
    ("errors-are-late-divergence", "m", "measured", {}, const(DIVERGES)),
    (
        "two-shortcut-trains-widest",
        "m",
        "measured",
        {},
        lambda row: TRAINS if row["kind"] == "two_shortcut" else STUCK,
    ),
]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world[0])
def test_each_verdict_turns_in_another_world(world, smoke_root):
    claim, side, quantity, labels, change = world
    if change is None:  # a prediction that knows every end
        _, _, measured = rows_of(smoke_root, NAME)
        names = ("family", "kind", "depth", "scale", "trial", "lr")
        ends = {
            tuple(row[name] for name in names): row["value"]
            for row in measured.where(quantity="measured")
        }

        def change(row):
            return ends[tuple(row[name] for name in names)]

    check_world(smoke_root, NAME, (claim, side, quantity, labels, change))


def test_every_claim_has_a_world():
    check_all_turn(NAME, WORLDS)


def test_a_phase_that_is_never_foretold_has_no_share(smoke_root):
    study, predicted, measured = rows_of(smoke_root, NAME)
    (claim,) = (c for c in study.claims if c.name == "most-foretold")
    told = claim.check(predicted, measured).numbers
    shares = {f"share of foretold {n} that happened" for n in ("stays", "successes")}
    assert shares < told.keys()
    never = Rows({**row, "value": TRAINS} for row in predicted)
    assert shares & claim.check(never, measured).numbers.keys() == {
        "share of foretold successes that happened"
    }


def test_every_row_has_an_error(smoke_root):
    check_errors(smoke_root, NAME)


def test_every_network_and_rate_is_foretold_and_trained(smoke_root):
    study, predicted, measured = rows_of(smoke_root, NAME)
    config = study.presets["smoke"]
    runs = len(study.cells(config)) * len(config.rates)
    assert len(measured.where(quantity="measured")) == runs
    assert len(predicted.where(quantity="predicted")) == runs
    assert set(measured.where(quantity="measured").values()) == {0, 1, 2}


@pytest.mark.parametrize(
    ("end", "phase"),
    [
        (float("nan"), DIVERGES),
        (float("inf"), DIVERGES),
        (6.0, DIVERGES),
        (5.0, STUCK),
        (1.4, STUCK),
        (1.3, TRAINS),
        (0.9, TRAINS),
    ],
)
def test_phases_by_the_last_loss(end, phase):
    assert phase_of(end, start=5.0, best=0.9) == phase


def test_a_box_that_cuts_units_is_refused():
    study = find(NAME).study
    with pytest.raises(ValueError, match="multiples of 6"):
        study.config_from({**study.presets["smoke"].to_dict(), "depths": [8]})

"""The definitions: their verdicts, and worlds in which each turns."""

import pytest

from tests.studies.worlds import (
    check_all_turn,
    check_errors,
    check_verdicts,
    check_world,
    const,
    first,
    shift,
)

NAME = "definitions"

# Claim, side, quantity, labels, change.
WORLDS = [
    ("shortcut-network", "m", "output", {}, first(shift(1e-6))),
    ("shortcut-network", "m", "output_without_skip", {}, first(const(0.0))),
    ("shortcut-network", "m", "parameters", {}, first(shift(1.0))),
    ("positions", "m", "output_elsewhere", {}, first(const(0.0))),
    ("positions", "m", "output", {}, first(shift(1e-6))),
    ("whitened-digits", "m", "whiteness_gap", {}, const(1e-4)),
    ("whitened-digits", "m", "mean", {}, const(1e-4)),
    ("whitened-digits", "m", "label_norm_gap", {}, const(0.1)),
]


@pytest.mark.parametrize("number", range(len(WORLDS)))
def test_each_verdict_turns_in_another_world(number, smoke_root):
    check_world(smoke_root, NAME, WORLDS[number])


def test_verdicts_and_errors(smoke_root):
    check_verdicts(smoke_root, NAME, failures=set())
    check_errors(smoke_root, NAME)
    check_all_turn(NAME, WORLDS)

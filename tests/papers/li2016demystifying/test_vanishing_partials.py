"""Lemmas 3 and 4: verdicts and counterfactuals."""

import pytest
import torch

from tests.studies.counterfactuals import const, first, refused, shift, study_tests
from theodolite.core import ShortcutBlueprint
from theodolite.instruments import HalfSquareLoss
from theodolite.networks import build
from theodolite.theory import moments
from theodolite_papers.li2016demystifying.shared.problems import random_data
from theodolite_papers.li2016demystifying.vanishing_partials.config import (
    complete,
    patterns,
)

STUDY = "vanishing_partials"
VERDICTS = {"lemma-3-whole-unit": ("FAILS", "HOLDS")}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("lemma-3-whole-unit", "m", "no_unit", {}, first(shift(1e-6))),
    ("lemma-3-whole-unit", "m", "chain", {}, first(const(0.0))),
    ("lemma-3-whole-unit", "m", "first_order", {}, const(2.0)),
    ("lemma-3-whole-unit", "m", "first_order", {"n": 3}, first(const(2.0))),
    ("lemma-3-every-unit", "m", "part", {}, first(shift(1e-6))),
    ("lemma-3-every-unit", "m", "whole", {}, const(0.0)),
    ("lemma-4-translation", "m", "shift_loss", {}, first(shift(1e-6))),
    ("lemma-4-translation", "m", "shift_partial", {}, first(shift(1e-6))),
    ("lemma-4-translation", "m", "swapped", {"n": 1}, first(const(0.0))),
]


TestStudy = study_tests(STUDY, COUNTERFACTUALS, VERDICTS)
test_what_cannot_be_run_is_refused = refused(STUDY, ({"order": 2}, "order 2"))


def test_units_are_complete_when_all_their_matrices_are_met():
    assert patterns(2, 2) == [(0, 0), (0, 1), (1, 1)]
    assert [complete(chosen, 2) for chosen in ((0,), (0, 1), (0, 2), (0, 1, 2, 3))] == [
        0, 1, 0, 2,
    ]  # fmt: skip


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_derivative_along_a_chain_is_an_entry_of_m(n):
    """Entry (0, 2) of the last matrix, (2, 2) between, (2, 1) of the first."""
    x, y = random_data(0, samples=12, width=3)
    network = build(
        ShortcutBlueprint(width=3, depth=n, shortcut=n, init="zero"), seed=0
    )
    weights = list(network.parameters())
    loss = HalfSquareLoss()(network(torch.tensor(x)), torch.tensor(y))
    chain = [(2, 2)] * n
    chain[0], chain[-1] = (2, 1), (0, 2)
    found = loss
    for weight, entry in zip(weights[:-1], chain[:-1], strict=True):
        (slope,) = torch.autograd.grad(found, weight, create_graph=True)
        found = slope[entry]
        assert found.item() == 0
    (slope,) = torch.autograd.grad(found, weights[-1])
    wanted = moments(x, y).gap[0, 1]
    assert slope[chain[-1]].item() == pytest.approx(wanted, abs=1e-13)

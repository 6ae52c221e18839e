"""Eq 31, figure 1(f), theorem 5: verdicts and counterfactuals."""

import math
from functools import partial

import pytest

from tests.studies.counterfactuals import (
    claim_of,
    const,
    first,
    refused,
    rows_of,
    scale,
    shift,
    study_tests,
    with_change,
)
from theodolite.core import PredictedAndMeasured, Rows
from theodolite.theory import mixture_moments, network_mixture, path_weights
from theodolite_papers.littwin2016loss.critical_points.config import (
    DEPTH,
    PRESETS,
    Config,
    ladder,
)

STUDY = "critical_points"
# At SMOKE sixteen glasses are too few for single indices and for low energies.
VERDICTS = {
    "eq-48": ("FAILS", "HOLDS"),
    "counts-within-a-tenth": "UNDECIDED",
    "minima-meet-kac-rice": "UNDECIDED",
    "counts-below-an-energy": "UNDECIDED",
}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    # An exponent of zero at order 3, and one that is off by less than that.
    ("eq-31", "p", "excess", {"index": 1, "order": 3}, shift(0.01324)),
    ("eq-31", "p", "excess", {"index": 2}, shift(-0.0075)),
    ("eq-31", "p", "excess", {"index": 1}, lambda row: row["width"] ** -0.25),
    ("eq-31", "p", "rival_excess", {}, const(0.0)),
    ("minima-too", "p", "excess", {"index": 0, "order": 3}, shift(0.01324)),
    ("slow-approach", "p", "excess", {"index": 0}, lambda row: 1 / row["width"]),
    ("slow-approach", "p", "excess", {"index": 0}, lambda row: -row["value"]),
    ("slow-approach", "p", "excess", {"index": 0}, lambda row: row["width"] ** -0.34),
    ("slow-approach", "p", "excess", {"index": 0}, lambda row: row["width"] ** -0.66),
    ("figure-1f-rises", "p", "exponent_rise", {"depth": 10}, first(scale(-1))),
    ("figure-1f-ends", "p", "shallow_end", {}, first(const(1e-3))),
    ("figure-1f-ends", "p", "deep_end", {}, first(const(1e-3))),
    ("theorem-5", "p", "shortfall", {}, first(const(-1e-6))),
    ("eq-48", "p", "chain_gap", {}, const(0.0)),
    ("eq-48", "p", "slope_gap", {}, first(const(1e-3))),
    ("eq-48", "p", "least_slope", {}, first(const(-1e-3))),
    ("eq-48", "p", "ratio_room", {}, first(const(-1e-3))),
    ("order-one-must-go", "p", "kept_ratio", {}, const(1.5)),
    ("order-one-must-go", "p", "kept_exponent", {}, const(0.1)),
    ("gap-to-plain", "p", "gap_excess", {}, const(0.1)),
    ("counts-meet-kac-rice", "p", "total", {}, scale(2.0)),
    ("counts-meet-kac-rice", "m", "total", {"width": 2}, scale(0.4)),
    ("counts-meet-kac-rice", "p", "asymptotic", {}, scale(2.5)),
    ("minima-meet-kac-rice", "p", "count", {"index": 1}, scale(2.5)),
    ("counts-below-an-energy", "p", "below", {}, scale(3.0)),
    ("counts-within-a-tenth", "p", "total", {}, scale(1.5)),
    ("index-on-the-sphere", "m", "euler", {"width": 3}, shift(1.0)),
    ("index-on-the-sphere", "m", "flat_gap", {}, const(0.0)),
    ("mixtures-have-fewer", "p", "pair_shortfall", {}, first(const(-1e-6))),
    ("residual-has-fewer", "p", "residual_shortfall", {}, first(const(-1e-6))),
    ("counted-mixtures-have-fewer", "m", "total", {"mixture": "three"}, scale(0.5)),
    ("counted-mixtures-have-fewer", "p", "count", {"mixture": "three"}, scale(0.5)),
    ("counted-residual-has-fewer", "m", "total", {"mixture": "four"}, scale(0.3)),
    ("counted-residual-has-fewer", "p", "count", {"mixture": "four"}, scale(0.3)),
    ("finite-dimensions-rise", "p", "rise", {}, first(scale(-1))),
]


TestStudy = study_tests(STUDY, COUNTERFACTUALS, VERDICTS)


def test_every_search_is_complete(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    totals = both.measured.where(quantity="total")
    assert {row["status"] for row in totals} == {"converged"}


def test_one_incomplete_search_decides_nothing(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    lost = Rows(
        {**row, "error": math.inf} if row["quantity"] == "total" and i % 9 == 0 else row
        for i, row in enumerate(both.measured)
    )
    there = PredictedAndMeasured(both.predicted, lost)
    claim = claim_of(study, "counts-meet-kac-rice")
    assert claim.rule(there).outcome == "UNDECIDED"


@pytest.mark.parametrize(
    ("claim", "quantity", "width"),
    [("minima-meet-kac-rice", "count", 5), ("counts-below-an-energy", "below", 3)],
)
def test_exact_counts_hold_only_where_the_rival_is_excluded(
    claim, quantity, width, smoke_root
):
    study, both = rows_of(smoke_root, STUDY)
    named = claim_of(study, claim)

    def exact(row):
        keys = ("width", "mixture", "index")
        labels = {key: row[key] for key in keys if key in row}
        wanted = both.predicted.where(quantity=quantity, **labels)
        return wanted.values()[0] if wanted else row["value"]

    counterfactual = with_change(both, "m", quantity, exact)
    assert named.rule(counterfactual).outcome == "HOLDS"
    rival = with_change(counterfactual, "p", "total", scale(0.2), width=width)
    assert named.rule(rival).outcome == "UNDECIDED"


@pytest.mark.parametrize("beta", [0.5, 1.0, 4.0])
def test_the_ladder_is_the_mixture_of_residual_networks(beta):
    wanted = network_mixture(path_weights(DEPTH, beta))
    assert ladder(beta) == pytest.approx(dict(wanted), rel=1e-12)


@pytest.mark.parametrize(("depth", "beta"), [(10, 0.12041), (100, 0.010173)])
def test_where_order_one_makes_the_ratio_less_than_one(depth, beta):
    def ratio(scale):
        squares = path_weights(depth, scale) ** 2
        mixture = dict(enumerate((squares / squares.sum()).tolist(), start=1))
        return mixture_moments(mixture).ratio

    assert ratio(0.9999 * beta) < 1 < ratio(1.0001 * beta)


test_what_cannot_be_counted_is_refused = refused(
    partial(Config, glasses=PRESETS["smoke"].glasses),
    ({"glasses": ((3, ("five",)),)}, "pass mixtures out of three"),
    ({"glasses": ((6, ("three",)),)}, "in dimensions from 2 to 5"),
    ({"limits": (60, 80, 120, 160, 240)}, "six dimensions or more"),
    ({"limits": (10, 20, 30, 40, 60, 80)}, "each twice the last but one"),
    ({"limits": (8, 6, 16, 12, 32, 24)}, "each twice the last but one"),
)

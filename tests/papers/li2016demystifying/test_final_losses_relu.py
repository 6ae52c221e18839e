"""Figure 8: verdicts and counterfactuals."""

from typing import ClassVar

import pytest

from tests.papers.li2016demystifying.committed_counterfactuals import (
    CommittedChecks,
    changed,
    committed,
    const,
    legend,
    moved,
    outcome,
    power,
)
from theodolite import figures
from theodolite.core import PredictedAndMeasured
from theodolite.studies import find
from theodolite_papers.li2016demystifying.final_losses_relu.config import BESIDE
from theodolite_papers.li2016demystifying.shared.final_losses.figure import (
    DIVERGES,
    by_rate,
)

STUDY = "final_losses_relu"
TWO, XAVIER, ORTHOGONAL = (
    {"network": name} for name in ("two_shortcut", "xavier", "orthogonal")
)
LOSS, OWN, MEAN = (
    ("final_loss", "value"),
    ("final_loss", "own_rate"),
    ("mean_final_loss", "value"),
)
# Claim, outcome, and what is changed in the committed rows: a counterfactual with it.
COUNTERFACTUALS = [
    ("deeper-relu-is-better", "FAILS", [(LOSS, TWO, power(0.1, 0.2))]),
    ("relu-beats-linear", "FAILS", [(LOSS, TWO, const(0.4))]),
    ("plain-relu-fails", "FAILS", [(LOSS, ORTHOGONAL, power(1, -0.2))]),
    ("plain-relu-fails", "FAILS", [(LOSS, {**TWO, "depth": 64}, const(0.6))]),
    ("two-shortcut-lowest-relu", "FAILS", [(LOSS, TWO, const(0.6))]),
    ("two-shortcut-lowest-relu", "UNDECIDED",
     [(LOSS, XAVIER, lambda row: 0.13 * 10 ** (row["trial"] % 2 - 0.5))]),
    ("plain-relu-any-rate", "FAILS",
     [(MEAN, {**XAVIER, "depth": 64}, lambda row: 10.0 ** row["rate"])]),
    ("plain-relu-any-rate", "UNDECIDED", [(MEAN, {**XAVIER, "depth": 2}, const(0.4))]),
    ("two-shortcut-higher-rates-relu", "HOLDS", [(OWN, TWO, moved(1))]),
    ("two-shortcut-higher-rates-relu", "FAILS", [(OWN, TWO, moved(-1))]),
]  # fmt: skip


@pytest.fixture(scope="module")
def both():
    return committed(STUDY)


class TestStudy(CommittedChecks):
    study = STUDY
    # Rates with ReLUs are a step or two apart: what was tried does not tell them.
    verdicts: ClassVar = {"two-shortcut-higher-rates-relu": "UNDECIDED"}
    beyond: ClassVar = {"relu-beats-linear", "two-shortcut-higher-rates-relu"}
    any_rate = "plain-relu-any-rate"
    without_rates: ClassVar = set()
    cases = COUNTERFACTUALS


def test_shallow_networks_alone_do_not_refute_an_order(both):
    """At depths 2 and 4 plain networks end lower, which the paper does not deny."""
    for depth in (2, 4):
        two, plain = (
            both.measured.where(quantity="final_loss", depth=depth, **network).values()
            for network in (TWO, ORTHOGONAL)
        )
        assert two.min() > plain.max() or two.mean() > plain.mean()
    assert outcome(STUDY, "two-shortcut-lowest-relu", both) == "HOLDS"


def test_a_flat_optimum_on_the_edge_leaves_the_loss_known(both):
    place = {"depth": 64, **ORTHOGONAL}
    assert both.measured.only(quantity="log10_rate", **place)["edge"] is True
    assert outcome(STUDY, "plain-relu-fails", both) == "HOLDS"
    steep = changed(both, [(MEAN, place, lambda row: 10.0 ** row["rate"])])
    assert outcome(STUDY, "plain-relu-fails", steep) == "UNDECIDED"


def test_rates_are_not_compared_where_all_end_alike(both):
    """Beyond depth 32 plain networks end alike at all rates."""
    deep = [(OWN, {**TWO, "depth": depth}, moved(-5)) for depth in (48, 64)]
    (claim,) = [c for c in find(STUDY).study.claims if c.name.endswith("rates-relu")]
    assert claim.rule(changed(both, deep)) == claim.rule(both)


def test_networks_beside_enter_no_claim(both):
    paper = both.measured.where(lambda row: row["network"] not in BESIDE)
    assert len(paper) < len(both.measured)
    for claim in find(STUDY).study.claims:
        assert claim.rule(PredictedAndMeasured(both.predicted, paper)) == claim.rule(
            both
        )


def test_networks_beside_are_marked(both):
    by_depth, rates = find(STUDY).study.drawings
    names = legend(by_depth, both)
    assert sum("not in the paper" in name for name in names) == len(BESIDE) == 2
    with figures.house_style():
        lines = by_depth.draw(by_depth.table(both)).axes[1].get_lines()
    assert sum(line.get_linestyle() == "-." for line in lines) == 2
    networks = {"Xavier", "orthogonal", "2-shortcut"}
    assert set(legend(rates, both)) == {*networks, "outputs zero", DIVERGES}


def test_lines_end_with_a_mark_where_a_higher_rate_diverged(both):
    table = by_rate(both)
    tried = both.measured.where(quantity="mean_final_loss")
    lasts = table.where(last=True)
    assert lasts
    for row in lasts:
        same = tried.where(network=row["network"], depth=row["depth"])
        above = [r for r in same if 10 ** r["rate"] > row["rate"] * (1 + 1e-9)]
        assert above
        assert all(r["diverged"] for r in above)

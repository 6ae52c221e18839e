"""Numbers against regions: every outcome, every join, and what is said of them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from theodolite.core import (
    Claim,
    ConfigError,
    Evidence,
    Kind,
    PredictedAndMeasured,
    Region,
    Rows,
    above,
    all_of,
    any_of,
    below,
    between,
    decide,
    inside,
    judge,
    known,
    mean,
    measured,
    near,
    sampled,
    share,
    undecided,
)
from theodolite.core.verdicts.judgement import ALPHA, excluding_rival

OURS = near(0, 1, source="ours", why="a simulation")


@pytest.mark.parametrize(
    ("value", "error", "region", "wanted"),
    [
        (2.0, 0.5, above(1), "HOLDS"),
        (1.5, 0.5, above(1), "UNDECIDED"),  # the end itself is outside
        (1.5, 0.5, between(1, 9), "HOLDS"),  # the end itself is inside
        (0.5, 0.4, above(1), "FAILS"),
        (0.5, 0.5, above(1), "FAILS"),  # all of it is at most 1
        (1.2, 0.4, above(1), "UNDECIDED"),
        (0.0, 0.0, near(0, 0), "HOLDS"),
        (1e-300, 0.0, near(0, 0), "FAILS"),
        (0.0, 0.0, above(0), "FAILS"),
        (0.0, 0.0, below(0), "FAILS"),
        (0.9, 0.05, OURS, "HOLDS"),
        (1.0, 0.05, OURS, "UNDECIDED"),
        (-3.0, 0.05, OURS, "FAILS"),
        (math.nan, 0.0, OURS, "UNDECIDED"),
        (1.0, math.inf, above(0), "UNDECIDED"),
    ],
)
def test_a_known_number_is_judged_by_its_interval(value, error, region, wanted):
    assert judge(known("x", value, error), region).outcome == wanted


@pytest.mark.parametrize("region", [above(0.2), below(0.2), OURS, between(-1, 0.3)])
@pytest.mark.parametrize("seed", range(20))
def test_outcomes_are_those_of_the_interval(region, seed):
    """p-values and intervals are two ways to one verdict."""
    rng = np.random.default_rng(seed)
    for n in (2, 5, 30):
        values = rng.normal(rng.normal(0, 0.7), 0.5, n)
        for number in (
            sampled("x", values, errors=0.05),
            share("x", int(rng.binomial(n, 0.4)), n),
        ):
            judgement = judge(number, region)
            low, high = judgement.interval
            if region.contains(low, high):
                assert judgement.outcome == "HOLDS"
            elif region.misses(low, high):
                assert judgement.outcome == "FAILS"
            else:
                assert judgement.outcome == "UNDECIDED"


def test_one_network_is_open_and_says_so():
    judgement = judge(sampled("loss", [3.0]), above(0))
    assert judgement.outcome == "UNDECIDED"
    assert "at least two" in judgement.because


def test_a_lost_network_leaves_the_mean_open():
    judgement = judge(sampled("loss", [1.0, math.nan, 1.1]), above(0))
    assert judgement.outcome == "UNDECIDED"
    assert "1 of 3 values are missing" in judgement.because


def test_networks_that_agree_to_the_last_digit_prove_little_if_few():
    few, many = (judge(sampled("index", [0.5] * n), near(0.5, 0)) for n in (4, 6))
    assert few.outcome == "UNDECIDED"
    assert few.needed == 6
    assert many.outcome == "HOLDS"
    assert judge(sampled("index", [0.5] * 5), above(0.4)).outcome == "HOLDS"
    tenth = sampled("x", np.full(7, 0.1) + 0.0)
    assert tenth.stderr == 0


def test_errors_of_rows_widen_the_interval():
    rows = Rows(
        {"quantity": "gap", "trial": t, "value": -0.013 - t * 1e-4, "error": 0.03}
        for t in range(10)
    )
    judgement = inside(mean(measured("gap")), above(0))(
        PredictedAndMeasured(Rows(), rows)
    )
    assert judgement.outcome == "UNDECIDED"
    exact = Rows({**row, "error": 0.0} for row in rows)
    assert inside(mean(measured("gap")), above(0))(
        PredictedAndMeasured(Rows(), exact)
    ).outcome == ("FAILS")


def test_an_empty_error_is_unknown_and_a_missing_one_exact():
    base = [{"quantity": "x", "trial": t, "value": 1.0 + t} for t in range(4)]
    read = mean(measured("x"))
    assert read(PredictedAndMeasured(Rows(), Rows(base))).slack == 0
    bare = Rows([{**row, "error": None} for row in base])
    assert math.isinf(read(PredictedAndMeasured(Rows(), bare)).slack)


def test_a_best_value_on_the_edge_decides_nothing():
    rows = Rows(
        {"quantity": "rate", "trial": t, "value": 0.4, "edge": t == 3} for t in range(4)
    )
    judgement = inside(mean(measured("rate"), log=True), below(9))(
        PredictedAndMeasured(Rows(), rows)
    )
    assert judgement.outcome == "UNDECIDED"
    assert "edge of what was tried" in judgement.because


def test_a_logarithm_of_what_may_be_zero_is_open():
    rows = Rows(
        {"quantity": "r", "trial": t, "value": 1e-9, "error": 2e-9} for t in range(3)
    )
    judgement = inside(mean(measured("r"), log=True), below(0))(
        PredictedAndMeasured(Rows(), rows)
    )
    assert judgement.outcome == "UNDECIDED"


def leaf(outcome):
    value = {"HOLDS": 1.0, "FAILS": -1.0, "UNDECIDED": 0.0}[outcome]
    return judge(known(outcome, value, 0.5), above(0))


@pytest.mark.parametrize(
    ("pieces", "every", "some"),
    [
        (["HOLDS", "HOLDS"], "HOLDS", "HOLDS"),
        (["HOLDS", "FAILS"], "FAILS", "HOLDS"),
        (["HOLDS", "UNDECIDED"], "UNDECIDED", "HOLDS"),
        (["FAILS", "UNDECIDED"], "FAILS", "UNDECIDED"),
        (["FAILS", "FAILS"], "FAILS", "FAILS"),
    ],
)
def test_joins_of_certain_pieces_are_logic(pieces, every, some):
    result = [leaf(outcome) for outcome in pieces]
    assert all_of(result).outcome == every
    assert any_of(result).outcome == some
    assert all_of(result).deciding.outcome == every
    assert any_of(result).deciding.outcome == some


def test_a_piece_fails_every_only_after_correction():
    rng = np.random.default_rng(1)
    near_miss = sampled("x", -0.55 + 0.5 * rng.normal(size=6) / 1.0)
    one = judge(near_miss, above(0))
    assert one.outcome == "FAILS"
    assert ALPHA / 8 < one.p_fails < ALPHA
    sure = [judge(sampled("y", [5.0, 5.1, 4.9]), above(0)) for _ in range(7)]
    assert all_of([one, *sure]).outcome == "UNDECIDED"
    certain = [judge(known("z", 1.0), above(0)) for _ in range(7)]
    assert all_of([one, *certain]).outcome == "FAILS", "certain pieces cost nothing"


def test_a_rival_that_fits_as_well_leaves_the_claim_open():
    assert excluding_rival(leaf("HOLDS"), leaf("HOLDS")).outcome == "HOLDS"
    assert excluding_rival(leaf("HOLDS"), leaf("FAILS")).outcome == "UNDECIDED"
    assert excluding_rival(leaf("FAILS"), leaf("FAILS")).outcome == "FAILS"


def test_nothing_to_judge_is_not_run_or_undecided_with_its_reason():
    assert all_of([]).outcome == "NOT RUN"
    result = undecided("no network was trained")
    assert result.because == "no network was trained"


@pytest.mark.parametrize(
    ("value", "region", "wanted"),
    [
        (2.0, above(1, source="ours", why="x"), 1.9),
        (0.5, above(1, source="ours", why="x"), 0.6),
        (0.5, below(1, source="ours", why="x"), 0.6),
        (0.2, OURS, 0.3),
        (-3.0, OURS, 2.9),
        (0.95, OURS, None),
    ],
)
def test_the_margin_at_which_a_verdict_turns(value, region, wanted):
    judgement = judge(known("x", value, 0.1), region)
    assert judgement.turns_at == (None if wanted is None else pytest.approx(wanted))
    if wanted is None:
        return
    for factor, same in ((1.001, True), (0.999, False)):
        if region is OURS:
            grown = factor if judgement.outcome == "HOLDS" else 2 - factor
            other = near(0, wanted * grown, source="ours", why="x")
        else:
            up = (judgement.outcome == "HOLDS") == (region.high < math.inf)
            end = wanted + (factor - 1) * (1 if up else -1)
            make = below if region.high < math.inf else above
            other = make(end, source="ours", why="x")
        assert (
            judge(known("x", value, 0.1), other).outcome == judgement.outcome
        ) == same


def test_a_verdict_says_how_many_networks_would_decide():
    values = np.array([0.9, -0.5, 1.4, 0.2])
    judgement = judge(sampled("gain", values), above(0))
    assert judgement.outcome == "UNDECIDED"
    assert judgement.needed is not None
    assert f"about {judgement.needed} networks" in judgement.because
    more = np.tile(values, judgement.needed // 4 + 1)
    assert judge(sampled("gain", more), above(0)).outcome == "HOLDS"
    bounded = judge(sampled("gain", values, errors=2.0), above(0))
    assert bounded.needed is None
    assert "would not decide" in bounded.because


@pytest.mark.parametrize(
    "make",
    [
        lambda: Region(),
        lambda: Region(low=2, high=1),
        lambda: near(0, 1, source="ours"),
    ],
)
def test_regions_that_claim_nothing_are_refused(make):
    with pytest.raises(ConfigError):
        make()


def claim(**changes):
    base = {
        "name": "c", "place": "p", "statement": "s", "rival": "r",
        "test": inside(mean(measured("x")), above(0)),
    }  # fmt: skip
    return Claim(**{**base, **changes})


def test_an_erratum_says_what_is_printed_and_what_is_right():
    with pytest.raises(ConfigError, match="erratum"):
        claim(kind=Kind.ERRATUM)
    with pytest.raises(ConfigError, match="erratum"):
        claim(printed="a", corrected="b")
    with pytest.raises(ConfigError, match="no erratum"):
        claim(corrected_test=inside(mean(measured("x")), above(0)))


def rows(centre):
    return PredictedAndMeasured(
        Rows(),
        Rows(
            {"quantity": "x", "trial": t, "value": centre + 0.1 * t} for t in range(5)
        ),
    )


def test_both_sets_of_rows_are_ruled_on_and_the_committed_one_counts():
    verdict = decide(claim(), Evidence(rows(-1), rows(1), on="images"))
    assert (verdict.outcome, verdict.own.outcome) == ("HOLDS", "FAILS")
    assert verdict.rests_on == "committed"
    own = decide(claim(own_rows_only=True), Evidence(rows(-1), rows(1)))
    assert (own.outcome, own.rests_on) == ("FAILS", "own")


def test_one_erratum_yields_both_verdicts():
    erratum = claim(
        kind=Kind.ERRATUM, printed="x > 0", corrected="x < 0",
        corrected_test=inside(mean(measured("x")), below(0)),
    )  # fmt: skip
    ruling = erratum.rule(rows(-1))
    unsure = replace(ruling, corrected=leaf("UNDECIDED"))
    assert not unsure.confirmed
    assert not replace(ruling, corrected=leaf("FAILS")).confirmed
    assert (ruling.outcome, ruling.corrected.outcome) == ("FAILS", "HOLDS")
    assert ruling.confirmed
    assert not erratum.rule(rows(1)).confirmed


def test_a_saved_verdict_is_plain_and_complete():
    saved = decide(claim(), Evidence(rows(1))).to_dict()
    judged = saved["own"]["judged"]
    assert saved["verdict"] == "HOLDS"
    assert judged["low"] > 0
    assert judged["region"]["low"] == 0
    assert "high" not in judged["region"]  # it has none
    assert judged["n"] == 5


def test_counts_that_agree_want_as_many_networks_as_a_test_of_signs():
    """Errors of rows do not make two of them enough."""
    few = judge(sampled("count", [3.0, 3.0, 3.0], errors=0.1), above(0))
    assert few.outcome == "UNDECIDED"
    assert few.needed == 5
    assert judge(sampled("count", [3.0] * 5, errors=0.1), above(0)).outcome == "HOLDS"


def test_a_share_says_how_many_cases_would_decide():
    judgement = judge(share("escaped", 3, 4), above(0.5))
    assert judgement.outcome == "UNDECIDED"
    assert judgement.needed is not None
    more = share("escaped", judgement.needed * 3 // 4, judgement.needed)
    assert judge(more, above(0.5)).outcome == "HOLDS"
    assert judge(share("escaped", 2, 4), above(0.5)).needed is None

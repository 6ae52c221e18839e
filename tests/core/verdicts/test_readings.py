"""What a verdict needs beyond its number: readings, runs that count, stages, theory."""

import math
from dataclasses import replace

import numpy as np
import pytest

from theodolite.core import (
    Alive,
    Claim,
    ConfigError,
    PredictedAndMeasured,
    ReadAs,
    Rows,
    above,
    against,
    all_of,
    any_of,
    below,
    between,
    difference,
    each,
    even_stages,
    every,
    highest,
    inside,
    judge,
    known,
    largest,
    largest_distance,
    mean,
    measured,
    ordered,
    predicted,
    quantile,
    readings,
    sampled,
    steadily,
    survival,
)
from theodolite.core.verdicts.judgement import excluding_rival


def sides(rows, theory=()):
    return PredictedAndMeasured(Rows(theory), Rows(rows))


def rows(quantity, values, **labels):
    return [
        {"quantity": quantity, "trial": t, "value": v, "error": 0.0, **labels}
        for t, v in enumerate(values)
    ]


def positive(quantity):
    return inside(mean(measured(quantity)), above(0))


TWO = readings(
    ReadAs("linear axis", "The loss as drawn.", "Figure 2(d)", positive("linear")),
    ReadAs("logarithm", "The logarithm of the loss.", "ours", positive("log")),
)
VALUES = {"HOLDS": (1, 1.1, 1.2), "FAILS": (-1, -1.1, -1.2), "UNDECIDED": (-1, 0, 1.1)}


def read(first, second):
    named = (("linear", first), ("log", second))
    return TWO(sides(row for q, o in named for row in rows(q, VALUES.get(o, ()))))


@pytest.mark.parametrize(
    ("first", "second", "wanted", "depends"),
    [
        ("HOLDS", "HOLDS", "HOLDS", False),
        ("FAILS", "FAILS", "FAILS", False),
        ("HOLDS", "FAILS", "UNDECIDED", True),
        ("HOLDS", "UNDECIDED", "UNDECIDED", True),
        ("UNDECIDED", "FAILS", "UNDECIDED", True),
        ("UNDECIDED", "UNDECIDED", "UNDECIDED", False),
        ("HOLDS", "", "UNDECIDED", False),
        ("", "", "NOT RUN", False),
    ],
)
def test_a_claim_is_decided_only_where_readings_agree(first, second, wanted, depends):
    judgement = read(first, second)
    assert judgement.outcome == wanted
    assert judgement.because.startswith("depends on the reading") == depends
    saved = judgement.to_dict()["pieces"][1]
    assert saved["note"] == "The logarithm of the loss. (ours)"


def test_the_reason_names_the_reading_that_turns_a_verdict():
    assert read("HOLDS", "FAILS").because == (
        'depends on the reading: HOLDS under "linear axis" (linear 1.1 [0.9314, 1.269] '
        'lies in the region > 0), but FAILS under "logarithm" (log -1.1 [-1.269, '
        "-0.9314] lies outside of the region > 0)"
    )
    assert read("HOLDS", "FAILS").deciding.name == "log"
    assert "; 2 readings agree" in read("HOLDS", "HOLDS").because
    assert "; not run under logarithm" in read("HOLDS", "").because


def several(said):
    return readings(*(ReadAs(name, "One.", "ours", positive(name)) for name in said))(
        sides(row for name, one in said.items() for row in rows(name, VALUES[one]))
    )


def test_a_reading_that_contradicts_the_first_is_named_before_one_that_is_open():
    judged = several({"a": "HOLDS", "b": "UNDECIDED", "c": "FAILS", "d": "HOLDS"})
    assert 'HOLDS under "a"' in judged.because
    assert 'but FAILS under "c"' in judged.because
    assert judged.because.endswith("; of 4 readings: 2 HOLDS, 1 FAILS, 1 UNDECIDED")
    assert judged.to_dict()["decider"] == 2


def test_readings_of_a_reading_count_one_by_one():
    nested = readings(
        ReadAs("strict", "Strictly.", "Figure 1", TWO),
        ReadAs("loose", "Loosely.", "ours", positive("log")),
    )
    both = sides(rows("linear", VALUES["HOLDS"]) + rows("log", VALUES["FAILS"]))
    judged = nested(both)
    assert [piece.name for piece in judged.pieces] == [
        "strict; linear axis",
        "strict; logarithm",
        "loose",
    ]
    assert judged.because.count("depends on the reading") == 1
    assert judged.because.endswith("; of 3 readings: 1 HOLDS, 2 FAILS")
    assert (judged.p_holds, judged.p_fails) == (
        max(piece.p_holds for piece in judged.pieces),
        max(piece.p_fails for piece in judged.pieces),
    )


@pytest.mark.parametrize(
    "listed",
    [
        (ReadAs("a", "x", "Figure 1", positive("x")),),
        (ReadAs("a", "x", "ours", positive("x")),) * 2,
        (ReadAs("a", "x", "", positive("x")), ReadAs("b", "x", "y", positive("x"))),
    ],
)
def test_readings_need_names_and_sources(listed):
    with pytest.raises(ConfigError, match="two or more with different names"):
        readings(*listed)


def made(test, **more):
    return Claim(name="c", place="p", statement="s", rival="r", test=test, **more)


CURVES = {  # loss at steps 0, 50, 100
    0: (2.3, 1.0, 0.1),
    1: (2.3, 1.0, 0.2),
    2: (2.3, 2.4, 2.4),  # does not learn
    3: (2.3, 9.0, None),  # diverges
    4: (2.3, 1.0, 0.3),  # learns, and its norm explodes
}
RUNS = [
    {"quantity": "loss", "rate": 0.1, "trial": t, "step": 50 * i, "value": v}
    for t, curve in CURVES.items()
    for i, v in enumerate(curve)
] + [{**row, "step": 100} for row in rows("norm", (1.0, 2.0, 1.0, 1.0, 1e33), rate=0.1)]
RULE = Alive(by=("rate", "trial"), loss="loss", bounds={"norm": 1e6})


def test_dead_runs_are_counted_and_not_averaged_in():
    small = inside(mean(measured("norm")), below(10))
    both = sides([*RUNS, {"quantity": "print", "value": 3.0}])
    assert made(small).rule(both).outcome == "UNDECIDED"
    ruling = made(small, alive=RULE).rule(both)
    assert ruling.outcome == "HOLDS"
    assert ruling.judged.deciding.quantity.n == 2
    assert ruling.died == (
        "3 of 5 runs died (1 not below its start, 1 not finite, 1 norm above 1e+06; "
        "3 at rate 0.1)"
    )
    assert ruling.to_dict()["died"] == ruling.died
    gone = made(inside(mean(measured("norm")), below(10)), alive=RULE).rule(
        sides(row for row in RUNS if row["trial"] > 1)
    )
    assert gone.outcome == "UNDECIDED"
    assert gone.judged.because == "no run that it reads is alive"
    kept, _ = RULE.split(both)
    assert len(kept.measured.where(quantity="print")) == 1, "belongs to no run"


def test_dead_runs_are_judged_by_claims_about_stability():
    stable = inside(survival(rate=0.1), above(0.9))
    ruling = made(stable, alive=RULE).rule(sides(RUNS))
    assert ruling.outcome == "FAILS"
    assert ruling.judged.deciding.quantity.value == 0.4
    huge = inside(highest(measured("norm")), above(1e30))
    assert made(huge, alive=RULE).rule(sides(RUNS)).outcome == "FAILS"
    assert made(huge, alive=RULE, all_runs=True).rule(sides(RUNS)).outcome == "HOLDS"


@pytest.mark.parametrize(("chance", "dead"), [(0.15, 4), (0.25, 3), (None, 3)])
def test_the_loss_ends_below_chance_or_its_start(chance, dead):
    rule = Alive(by=("rate", "trial"), loss="loss", chance=chance, bounds={"norm": 1e6})
    assert rule.split(sides(RUNS))[1].startswith(f"{dead} of 5 runs died")


@pytest.mark.parametrize(("named", "died"), [("loss", 0), ("error", 1)])
def test_of_several_losses_the_first_that_a_run_has_is_judged(named, died):
    both = sides(
        {"quantity": q, "trial": 0, "step": s, "value": v}
        for q, values in ((named, (1.0, 2.0)), ("other", (3.0, 0.1)))
        for s, v in enumerate(values)
    )
    rule = Alive(by=("trial",), loss=("error", "other"))
    assert rule.split(both)[1].startswith(f"{died} of 1 runs died")


def test_a_rule_that_names_nothing_is_refused():
    for fields in ({"by": ("trial",)}, {"by": (), "loss": "loss"}):
        with pytest.raises(ConfigError, match="names the labels of a run"):
            Alive(**fields)


def test_logarithms_of_a_selection_serve_every_judge():
    norms = sides(rows("norm", (1e2, 1e4, 1e9)))
    assert mean(measured("norm"))(norms).lower(0.05) < 0, "of a positive quantity"
    number = mean(measured("norm").log10())(norms)
    assert (number.value, number.name) == (5.0, "log10 norm")
    assert largest(measured("norm").log10())(norms).value == 9.0
    exact = {"quantity": "x", "trial": 0, "value": 10.0, "error": 9.0}
    top = highest(measured("x").log10())(sides([exact]))
    assert top.slack == pytest.approx(1.0)
    zero = mean(measured("norm").log10())(sides(rows("norm", (1.0, 0.0))))
    assert math.isnan(zero.value)


def test_a_quantile_has_the_bounds_of_order_statistics():
    number = quantile(measured("x"), 0.5)(sides(rows("x", range(1, 9))))
    # P(Binomial(8, 1/2) <= 1) is 9/256, and of at most 2 it is 37/256.
    assert (number.value, number.lower(0.05), number.upper(0.05)) == (4.5, 2.0, 7.0)
    assert number.p_above(1.5) == pytest.approx(9 / 256)
    assert number.p_below(8.0) == pytest.approx(9 / 256)
    assert number.p_below(8.0, strict=False) == pytest.approx(1 / 256)
    few = quantile(measured("x"), 0.95)(sides(rows("x", range(58))))
    assert math.isinf(few.upper(0.05))
    enough = quantile(measured("x"), 0.95)(sides(rows("x", range(59))))
    assert enough.upper(0.05) == 58.0
    with pytest.raises(ConfigError, match="within"):
        quantile(measured("x"), 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_intervals_of_quantiles_say_what_their_p_values_say(seed):
    values = np.random.default_rng(seed).normal(size=15).round(1)
    number = quantile(measured("x"), 0.7)(sides(rows("x", values)))
    for region in (above(0.2), below(0.2), between(-0.5, 1.5)):
        judgement = judge(number, region)
        low, high = judgement.interval
        assert (judgement.outcome == "HOLDS") == region.contains(low, high)
        assert (judgement.outcome == "FAILS") == region.misses(low, high)


def test_an_extreme_is_a_statement_about_these_networks():
    worst = inside(highest(measured("x")), below(9))(sides(rows("x", (1.0, 2.0, 3.0))))
    assert worst.because == "highest x 3, of these 3 networks lies in the region < 9"


def training(values, steps):
    return sides(
        {"quantity": "depth", "trial": t, "step": s, "value": v + 0.01 * t * (s % 3)}
        for s, v in zip(steps, values, strict=True)
        for t in range(4)
    )


def test_steadily_is_judged_at_times_spread_evenly():
    grows = steadily(measured("depth"), by=above(0.05, source="ours", why="noise"))
    steps = (0, 1, 3, 10, 32, 250, 500, 750, 1000)
    late = training((0, 0, 0, 0, 0, 1, 2, 3, 4), steps)
    assert grows(late).outcome == "HOLDS", "the first few updates do not decide"
    early = training((0, 1, 2, 3, 4, 4.1, 4.1, 4.1, 4.1), steps)
    assert grows(early).outcome == "FAILS"
    assert len(grows(early).leaves) == 4
    sparse = grows(training((0, 1, 2, 3, 4), (0, 1, 3, 10, 1000)))
    assert sparse.outcome == "UNDECIDED"
    assert "no readings near step 0, 250, 500, 750, 1000" in sparse.because
    assert grows(sides(())).outcome == "NOT RUN"
    assert even_stages(10, 3) == (0, 3, 7, 10)
    with pytest.raises(ConfigError, match="noise of a reading"):
        steadily(measured("depth"), by=above(0))


def test_a_region_that_theory_misses_is_refused():
    def high(select):
        return inside(mean(select), above(0.95, source="ours", why="near one"))

    claim = made(high(measured("ratio")), theory=high(predicted("limit")))
    numbers = rows("ratio", (0.96, 0.97, 0.98))
    for limit, refused in ((0.9, True), (0.99, False)):
        both = sides(numbers, [{"quantity": "limit", "value": limit}])
        if refused:
            with pytest.raises(ConfigError, match=r"gives limit 0\.9, outside of > 0"):
                claim.rule(both)
        else:
            assert claim.rule(both).outcome == "HOLDS"
    assert claim.rule(sides(numbers)).outcome == "HOLDS", "nothing is predicted"
    joined = every(high(predicted("limit")), high(predicted("other")))
    both = sides(
        numbers,
        [{"quantity": q, "value": v} for q, v in (("limit", 1.0), ("other", 0.5))],
    )
    with pytest.raises(ConfigError, match="gives other 0"):
        made(high(measured("ratio")), theory=joined).rule(both)


@pytest.mark.parametrize(
    "test",
    [
        positive("none"),
        inside(largest(measured("none")), below(1)),
        inside(highest(measured("none")), below(1)),
        inside(quantile(measured("none"), 0.5), below(1)),
        inside(survival(), above(0.5)),
        ordered(measured("none"), measured("no")),
        each("depth", measured("none"), lambda depth: positive("none")),
        against(positive("none"), positive("x")),
        every(positive("none"), positive("no")),
    ],
)
def test_what_has_no_rows_was_not_run(test):
    assert test(sides(rows("x", (1.0, 2.0, 3.0)))).outcome == "NOT RUN"


def test_what_has_some_rows_was_run():
    both = sides([*rows("x", (1.0, 1.1, 1.2)), {**rows("y", (1.0,))[0], "trial": 9}])
    assert every(positive("x"), positive("none"))(both).outcome == "UNDECIDED"
    assert positive("y")(both).outcome == "UNDECIDED", "one network"
    apart = difference(measured("x"), measured("y"))
    assert "no network has both" in inside(apart, above(0))(both).because


def test_the_rival_is_told_apart_from_the_number_that_decides():
    sure = judge(sampled("gain", [1.0, 1.1, 1.2]), above(0))
    rival = judge(sampled("rival's gain", [0.3, 0.2, 0.5]), above(0))
    open_rival = judge(sampled("rival's gain", [0.3, -0.1, 0.5]), above(0))
    held = excluding_rival(sure, rival)
    assert held.outcome == "HOLDS"
    assert held.p_holds == rival.p_holds > sure.p_holds, "the rival is the weaker one"
    assert held.deciding.name == "gain"
    assert held.because.startswith("gain 1.1 [0.9314, 1.269] lies in the region > 0; ")
    assert "; the rival is excluded: rival's gain 0.3333 " in held.because
    left = excluding_rival(sure, open_rival)
    assert left.outcome == "UNDECIDED"
    assert left.deciding.name == "rival's gain"
    assert "the rival is not excluded: rival's gain" in left.because


def test_holms_step_is_told_in_words():
    near = judge(sampled("near", [-1.0, -0.7, -0.2, -0.4]), above(0))
    sure = [judge(sampled("sure", [1.0, 1.1, 1.2]), above(0)) for _ in range(3)]
    assert near.p_fails == pytest.approx(0.0231, abs=1e-4)
    assert "; Holm's first step: the least of 2 p-values, 0.023, times 2 is 0.046" in (
        all_of([near, sure[0]]).because
    )
    undone = all_of([near, *sure])
    assert undone.outcome == "UNDECIDED"
    assert (
        "near alone fails, but not after Holm's first step: the least of 4 p-values, "
        "0.023, times 4 is 0.092, above 0.05" in undone.because
    )
    nested = all_of([all_of([near, sure[0]]), *sure[1:], sure[0]])
    assert "; near alone fails" in nested.because, "a join without a name"
    assert "Holm" not in all_of(sure).because
    assert "Holm" in any_of(sure).because
    assert "Holm" not in all_of([near, judge(known("z", -1.0), above(0))]).because


def test_chance_may_depend_on_the_row():
    """Half of the samples wrong is chance for two classes and not for ten."""
    rows = Rows(
        {"quantity": "error", "classes": classes, "trial": 0, "value": 0.5}
        for classes in (2, 10)
    )
    rule = Alive(
        by=("classes", "trial"),
        loss="error",
        chance=lambda row: 1 - 1 / row["classes"],
    )
    both, died = rule.split(PredictedAndMeasured(Rows(), rows))
    assert died == "1 of 2 runs died (1 not below chance, 0.5; 1 at classes 2)"
    assert both.measured.where(quantity="error").levels("classes") == [10]


def test_reasons_call_quantities_by_the_words_of_the_study():
    claim = Claim(
        name="falls", place="", statement="It falls.", rival="it rises",
        test=inside(largest(measured("rise")), below(0)),
    )  # fmt: skip
    rows = Rows([{"quantity": "rise", "trial": 0, "value": 0.5, "error": 0.0}])
    both = PredictedAndMeasured(Rows(), rows)
    words = {"rise": "rise of the loss"}
    told = replace(claim, words=words).rule(both).to_dict()["because"]
    assert told.startswith("largest rise of the loss 0.5")
    assert claim.rule(both).to_dict()["because"].startswith("largest rise 0.5")
    by_column = inside(largest(measured("rise").reading("error")), below(-1))
    told = replace(claim, test=by_column, words={"error": "rounding"}).rule(both)
    assert told.to_dict()["because"].startswith("largest rounding 0")


def test_a_distance_from_theory_s_own_rows_is_one_from_the_prediction():
    row = {"quantity": "speed", "trial": 0, "value": 1.0, "error": 0.0}
    both = PredictedAndMeasured(Rows([row]), Rows([{**row, "value": 1.5}]))
    read = largest_distance(predicted("speed"), measured("speed"), ("trial",))
    assert read(both).name == "largest distance of speed from its prediction"

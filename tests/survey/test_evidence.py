"""Rules read numbers with their errors; what is within its error is not said."""

import math
from dataclasses import replace

import pytest

from tests.survey.cases import by_hand, done, row
from theodolite.studies import catalogue
from theodolite.survey import RULES, Block, Survey, advise, find
from theodolite.survey.findings.evidence import (
    Evidence,
    Figure,
    decades,
    divided,
    figure_of,
)


def surveyed(*rows, blocks=(), **settings):
    """Return a survey of rows of one measure."""
    measured = (done("rates", list(rows)),)
    return Survey(
        title="x", n_parameters=1, blocks=blocks, measured=measured, settings=settings
    )


def of_depth(sizes, quantity="forward_rms", error=0.0):
    blocks = tuple(
        Block(index=i, name=f"b{i}", kind="plain") for i, _ in enumerate(sizes)
    )
    rows = [
        row("signal", quantity, size, error * size, block=b.name, depth=b.index)
        for b, size in zip(blocks, sizes, strict=True)
    ]
    return surveyed(*rows, blocks=blocks)


@pytest.mark.parametrize(
    ("value", "error", "above", "beyond"),
    [
        (3.0, 0.5, True, True),
        (3.0, 1.5, True, False),
        (1.0, 0.5, True, False),
        (1.0, 0.5, False, True),
        (1.0, 1.5, False, False),
        (math.inf, 0.0, True, True),
        (math.nan, 0.0, True, False),
        (math.nan, 0.0, False, False),
        (3.0, math.nan, True, False),
    ],
)
def test_only_what_is_past_its_error_is_beyond(value, error, above, beyond):
    evidence = Evidence(figure=Figure(value, error), threshold=2.0, above=above)
    assert evidence.beyond is beyond


def test_numbers_that_are_not_finite_come_back_from_rows():
    assert figure_of({"value": None, "nonfinite": "inf"}).value == math.inf
    assert math.isnan(figure_of({"value": None, "nonfinite": "not resolved"}).value)
    assert math.isnan(figure_of({"value": None}).value)


def test_a_number_without_an_error_convinces_nobody():
    dead = {"module": "relu", "n_units": 64}
    assert find(surveyed(row("units", "dead_share", 0.9, 0.0, **dead)))
    assert not find(surveyed(row("units", "dead_share", 0.9, **dead)))


def test_findings_and_advice_say_on_how_many_samples_their_number_was_taken():
    labels = {"module": "relu", "n_samples": 8, "of_samples": 256}
    few = surveyed(row("units", "dead_share", 0.9, 0.05, **labels))
    (finding,) = find(few)
    assert (finding.n_samples, finding.of_samples) == (8, 256)
    assert "The worst share is 0.9 ± 0.05 on 8 of 256 samples" in finding.says
    told = " ".join(str(replace(few, findings=(finding,))).split())
    assert "90 ± 5 % on 8 of 256 samples, above 25 %" in told
    assert advise(few, [finding])[0].code.startswith("# Measured on 8 of 256 samples.")


def test_numbers_of_different_samples_have_no_ratio():
    eight, more = Figure(10.0, 1.0, (8, 256)), Figure(1.0, 0.1, (64, 256))
    for ratio in (decades, divided):
        assert math.isnan(ratio(eight, more).value)
        assert ratio(eight, eight).samples == ratio(eight, Figure(1.0)).samples
        assert ratio(eight, eight).samples == (8, 256)


def test_decades_join_both_errors():
    joined = decades(Figure(10.0, 1.0), Figure(1.0, 0.1))
    assert joined.value == pytest.approx(1.0)
    assert joined.error == pytest.approx(math.hypot(0.1, 0.1) / math.log(10))


@pytest.mark.parametrize(
    ("share", "severity"), [(0.2, None), (0.4, "note"), (0.52, "note"), (0.8, "sick")]
)
def test_the_more_units_are_dead_the_worse(share, severity):
    findings = find(surveyed(row("units", "dead_share", share, 0.05, module="relu")))
    assert [f.severity for f in findings] == ([severity] if severity else [])


def test_growth_is_held_against_that_of_the_depth():
    fires = {f.rule for f in find(of_depth([1.0] * 9 + [40.0]))}
    silent = {f.rule for f in find(of_depth([1.0] * 99 + [40.0]))}
    assert "signal-explodes" in fires
    assert "signal-explodes" not in silent


@pytest.mark.parametrize(
    ("sizes", "quantity", "rule", "where"),
    [
        ([1.0, 90.0, 1.0], "forward_rms", "signal-explodes", ("b0", "b1")),
        ([1.0, 1e-3, 1.0], "forward_rms", "signal-vanishes", ("b0", "b1")),
        ([1.0, 9e3, 1.0], "backward_rms", "gradient-explodes", ("b1", "b2")),
        ([1.0, 1e-4, 1.0], "backward_rms", "gradient-vanishes", ("b1", "b2")),
    ],
)
def test_a_signal_is_followed_from_its_first_block_on(sizes, quantity, rule, where):
    (finding,) = [f for f in find(of_depth(sizes, quantity)) if f.rule == rule]
    assert finding.where == where


def test_an_overflow_is_an_explosion():
    assert "signal-explodes" in {f.rule for f in find(of_depth([1.0, 2.0, math.inf]))}


def test_findings_stand_worst_first_and_say_their_numbers():
    survey = of_depth([1.0, 30.0, 1e6])
    findings = find(survey)
    order = ["sick", "warning", "note", "good"]
    places = [order.index(finding.severity) for finding in findings]
    assert places == sorted(places)
    assert "from 1 to 1e+06" in findings[0].says


def test_a_survey_without_rows_finds_nothing():
    assert find(Survey(title="x", n_parameters=0, blocks=(), measured=())) == ()


def test_a_survey_of_all_measures_is_read():
    rules = {finding.rule for finding in find(by_hand())}
    assert rules <= {rule.name for rule in RULES}


def test_every_rule_has_words_a_source_and_a_study_that_exists():
    studies = {f"{entry.paper.name}/{entry.name}" for entry in catalogue()}
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    for rule in RULES:
        assert rule.source, rule.name
        assert rule.title, rule.name
        assert rule.says.endswith("."), rule.name
        assert not rule.study or rule.study in studies, rule.name

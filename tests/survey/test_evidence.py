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
    assert find(surveyed(row("rates", "rate_over_stable", 99.0, 0.0)))
    assert not find(surveyed(row("rates", "rate_over_stable", 99.0)))


def test_adaptive_rates_before_the_first_step_are_not_judged():
    labels = {
        "optimizer": "adam",
        "preconditioner": "the squared gradient of the batch",
    }
    used = {**labels, "preconditioner": "the optimiser's state"}
    assert not find(surveyed(row("rates", "rate_over_stable", 9.0, 0.1, **labels)))
    assert find(surveyed(row("rates", "rate_over_stable", 9.0, 0.1, **used)))


@pytest.mark.parametrize(
    ("value", "error", "fires"),
    [(5.0, 1.0, True), (5.0, 4.0, False), (5.0, None, True), (math.inf, None, True)],
)
def test_noise_without_a_signal_is_held_to_the_least_that_it_can_be(
    value, error, fires
):
    def rules(parts):
        labels = {"n_samples": 8, "n_parts": parts}
        rows = [row("rates", "noise_scale_per_batch", value, error, **labels)]
        return [f.rule for f in find(surveyed(*rows, batch_size=8))]

    assert bool(rules(8)) is fires
    assert bool(rules(2)) is (fires and error is not None)


def test_findings_and_advice_say_on_how_many_samples_their_number_was_taken():
    labels = {"module": "relu", "n_samples": 8, "of_samples": 256}
    few = surveyed(row("units", "dead_share", 0.9, 0.05, **labels))
    (finding,) = find(few)
    assert (finding.n_samples, finding.of_samples) == (8, 256)
    assert "The worst share is 0.9 ± 0.05 on 8 of 256 samples" in finding.says
    assert "0.9 ± 0.05 on 8 of 256 samples > 0.25" in str(
        replace(few, findings=(finding,))
    )
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
    ("ratio", "error", "rules"),
    [
        (1.5, 0.1, {"rate-too-large"}),
        (1.5, 0.6, set()),
        (0.5, 0.1, {"rate-fits"}),
        (0.01, 0.001, set()),
        (1e-4, 1e-5, {"rate-too-small"}),
        (1e-5, 5e-4, set()),
    ],
)
def test_a_rate_is_judged_beyond_its_error(ratio, error, rules):
    survey = surveyed(
        row("rates", "rate_over_stable", ratio, error),
        row("signal", "n_zero_gradients", 0, 0.0),
    )
    assert {finding.rule for finding in find(survey)} == rules


def test_past_twice_the_stable_rate_is_worse():
    (mild,) = find(surveyed(row("rates", "rate_over_stable", 1.5, 0.1)))
    (bad,) = find(surveyed(row("rates", "rate_over_stable", 2.5, 0.1)))
    assert (mild.severity, bad.severity) == ("warning", "sick")


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


def test_inputs_that_are_alike_from_the_start_do_not_merge():
    merged = of_depth([0.1, 0.5, 0.99], "forward_correlation")
    alike = of_depth([0.98, 0.985, 0.99], "forward_correlation")
    assert "inputs-merge" in {f.rule for f in find(merged)}
    assert "inputs-merge" not in {f.rule for f in find(alike)}


def test_fresh_running_statistics_are_nobodys_fault():
    norms = {"module": "bn", "kind": "BatchNorm2d"}
    rows = [row("norms", "running_mean_distance", 3.0, 0.1, **norms)]
    fresh = [*rows, row("norms", "batches_tracked", 0, 0.0, **norms)]
    used = [*rows, row("norms", "batches_tracked", 9, 0.0, **norms)]
    assert not find(surveyed(*fresh))
    assert [f.rule for f in find(surveyed(*used))] == ["running-statistics-far"]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ("as given", {"running-statistics-far", "sure-and-wrong"}),
        ("inputs as given; labels made up", {"running-statistics-far"}),
        ("made up: 8 images, random labels", set()),
    ],
)
def test_what_is_made_up_is_not_judged(inputs, said):
    result = surveyed(
        row("norms", "running_mean_distance", 3.0, 0.1, module="bn"),
        row("signal", "loss", 9.0, 0.1),
        row("signal", "loss_at_chance", 1.0, 0.0),
    )
    assert {f.rule for f in find(replace(result, inputs=inputs))} == said


def test_layer_norms_are_not_held_to_what_batch_norms_need():
    def of(kind):
        labels = {"module": "norm", "kind": kind}
        return surveyed(
            row("norms", "batch_per_channel", 4, 0.0, **labels),
            row("norms", "in_train_mode", 1, 0.0, **labels),
        )

    assert [f.rule for f in find(of("BatchNorm1d"))] == ["batch-norm-of-few"]
    assert not find(of("LayerNorm"))


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
    assert "inputs-merge" not in rules


def test_every_rule_has_words_a_source_and_a_study_that_exists():
    studies = {f"{entry.paper.name}/{entry.name}" for entry in catalogue()}
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    for rule in RULES:
        assert rule.source, rule.name
        assert rule.title, rule.name
        assert rule.says.endswith("."), rule.name
        assert rule.measures, rule.name
        assert not rule.study or rule.study in studies, rule.name

"""The page of findings says what the rounds say."""

import re
from pathlib import Path

import pytest

from tests.known_failures.evaluation import visit_pair
from tests.known_failures.pairs import PAIRS
from tests.known_failures.scores import findings_page, sealed_rates
from tests.known_failures.sound_networks import STANDARDS
from theodolite.survey import RULES
from theodolite.survey.advice.prescribing import REMEDIES

PAGE = (Path(__file__).parents[2] / "docs" / "findings.md").read_text()
SAMPLE = ("dead-units", "diverged-weights", "batch-norm-of-one")
CHEAP = ("map", "signal", "units", "norms")


def cells(page, first):
    """Return the cells of the line whose first cell is this."""
    (line,) = (line for line in page.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def section(title):
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_every_rule_pair_and_network_is_on_the_page():
    for rule in RULES:
        assert f"| `{rule.name}` ({rule.severity}) |" in section("Rules")
    for pair in PAIRS:
        cells(section("Pairs"), pair.name)
    for standard in STANDARDS:
        cells(section("Networks of common kinds"), standard.name)


def test_the_rates_of_the_sealed_half_are_those_of_its_scores():
    assert sealed_rates() in PAGE
    twins = cells(PAGE, "repaired twins alarmed")
    counted = ("2 of 64", "2 of 61", "1 of 60")  # by hand
    assert (twins[1], twins[3], twins[5]) == counted


def test_what_is_counted_agrees_with_the_tables():
    assert f"{2 * len(PAIRS) + len(STANDARDS)} networks, {len(RULES)} rules" in PAGE
    misses = int(re.search(r"\| misses \| (\d+)", PAGE)[1])
    rows = [cells(section("Pairs"), pair.name) for pair in PAIRS]
    missing = [
        rule
        for pair, row in zip(PAIRS, rows, strict=True)
        for rule in pair.expected
        if f"`{rule}`" not in row[3]
    ]
    assert misses == len(missing)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_the_pairs_says_the_same_again(name):
    (pair,) = (pair for pair in PAIRS if pair.name == name)
    sick, healthy = visit_pair(pair, measures=CHEAP)
    row = cells(section("Pairs"), name)
    assert set(re.findall(r"`(.*?)`", row[3])) == set(sick.expected)
    assert set(re.findall(r"`(.*?)`", row[4])) >= set(sick.others)
    assert set(re.findall(r"`(.*?)`", row[5])) >= set(healthy.fired)
    (rule,) = (rule for rule in RULES if rule.name in pair.expected)
    line = cells(section("Rules"), f"`{rule.name}` ({rule.severity})")
    again = rule.read(sick.survey)
    assert float(line[2].split(" ")[0]) == pytest.approx(again.figure.value, rel=0.01)


def test_advice_that_does_not_help_is_on_the_page_too():
    verdicts = re.findall(r"\| (yes|no|harm) \|$", PAGE, flags=re.MULTILINE)
    assert len(verdicts) >= len(PAIRS)
    assert set(verdicts) >= {"yes", "no"}


def test_every_rule_that_asks_for_action_has_a_remedy():
    answered = {rule for remedy in REMEDIES for rule in remedy.rules}
    ill = {rule.name for rule in RULES if rule.severity in ("sick", "warning")}
    assert answered >= ill


def test_a_miss_and_a_false_alarm_are_counted():
    (pair,) = (pair for pair in PAIRS if pair.name == "dead-units")
    sick, healthy = visit_pair(pair, measures=("map",))  # nothing looks at units
    assert sick.misses == ("dead-units",)
    page_of = [v for p in PAIRS for v in ((sick, healthy) if p is pair else ())]
    assert "| misses | 1: `dead-units` on dead-units |" in findings_page(
        [*page_of, *others()], (), ()
    )


def others():
    """Return visits of the remaining pairs, all of them silent."""
    from tests.known_failures.evaluation import Visit
    from theodolite.survey import Survey

    empty = Survey(title="x", n_parameters=0, blocks=(), measured=())
    return [
        Visit(name=pair.name, state=state, survey=empty)
        for pair in PAIRS
        if pair.name != "dead-units"
        for state in ("sick", "healthy")
    ]

"""The page of findings says what the rounds say."""

import re
from pathlib import Path

import pytest

from theodolite.survey import PAIRS, RULES, STANDARDS
from theodolite.survey.advising.prescribing import REMEDIES
from theodolite.survey.findings.rulebook import rule_named
from theodolite.survey.sickbay.ledger import findings_page
from theodolite.survey.sickbay.rounds import visit_pair

PAGE = (Path(__file__).parents[2] / "docs" / "findings.md").read_text()
SAMPLE = ("dead-units", "batch-norm-of-two", "parameters-not-in-the-optimiser")
CHEAP = ("map", "signal", "units", "norms", "optimiser")


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


def test_what_is_counted_agrees_with_the_tables():
    assert f"{2 * len(PAIRS) + len(STANDARDS)} networks, {len(RULES)} rules" in PAGE
    misses = int(re.search(r"\| misses \| (\d+)", PAGE)[1])
    found = [cells(section("Pairs"), pair.name) for pair in PAIRS]
    missing = [
        rule
        for pair, row in zip(PAIRS, found, strict=True)
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
    (rule,) = pair.expected
    line = cells(section("Rules"), f"`{rule}` ({rule_named(rule).severity})")
    again = rule_named(rule).read(sick.found)
    assert float(line[2].split(" ")[0]) == pytest.approx(again.figure.value, rel=0.01)


def test_advice_that_does_not_help_is_on_the_page_too():
    verdicts = re.findall(r"\| (yes|no|open) \|$", PAGE, flags=re.MULTILINE)
    assert len(verdicts) >= len(PAIRS)
    assert set(verdicts) >= {"yes", "no"}


def test_every_rule_but_praise_has_a_remedy():
    answered = {rule for remedy in REMEDIES for rule in remedy.rules}
    assert answered == {rule.name for rule in RULES if rule.severity != "good"}


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
    from theodolite.survey import Survey
    from theodolite.survey.sickbay.rounds import Visit

    empty = Survey(title="x", n_parameters=0, blocks=(), measured=())
    return [
        Visit(name=pair.name, state=state, found=empty)
        for pair in PAIRS
        if pair.name != "dead-units"
        for state in ("sick", "healthy")
    ]

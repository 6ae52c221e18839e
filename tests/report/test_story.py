"""The head of a paper: its balance and its story, told by verdicts."""

import re
from dataclasses import replace
from html import unescape

import pytest

from tests.report.papers import CLAIMS, page_of
from theodolite.core import Outcome, SavedNumber
from theodolite.pages import to_plain
from theodolite.pages.text import unrenderable
from theodolite.studies import catalogue, papers


def text_of(html):
    """Words as a reader meets them: formulas by their source, spaces as one."""
    shown = re.sub(r'<math alttext="([^"]*)".*?</math>', r"\1", html)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", shown)))


def part(html, kind):
    """The balance or the story of the first paper, as words."""
    ends = {"balance": "</section>", "story": "</section>\n</div>\n</section>"}[kind]
    match = re.search(rf'<section class="{kind}".*?{ends}', html, re.DOTALL)
    return text_of(match[0]) if match else ""


@pytest.fixture(scope="module")
def html(runs):
    return page_of(runs)


def changed(run, name, ruling=None, **changes):
    """The run with another verdict, or another ruling behind it."""
    claims = tuple(
        replace(one, own=replace(one.own, **(ruling or {})), **changes)
        if one.claim == name
        else one
        for one in run.summary.claims
    )
    return replace(run, summary=replace(run.summary, claims=claims))


def test_studies_stand_in_the_papers_order(html):
    places = [
        html.index(f'<section class="study" id="r-li2016demystifying--{name}"')
        for name in ("training_error", "initial_condition")
    ]
    assert places == sorted(places)


def test_the_balance_counts_the_papers_own_claims(html):
    words = part(html, "balance")
    assert (
        "Of 6 claims judged, 4 hold, 1 fail, 1 undecided; 2 verdicts depend on" in words
    )
    assert "1 of 2 errata are confirmed" in words
    assert "Of 1 statement beyond the paper, 0 hold, 1 fail, 0 undecided" in words
    assert "scale quick (3 studies)" in words
    assert "Not run yet: final losses" in words


def test_an_erratum_that_is_not_confirmed_is_said_to_be(runs):
    run = changed(
        runs[0], "transposed_block", {"confirmed": False}, verdict=Outcome.HOLDS
    )
    html = page_of([run])
    assert "0 of 1 erratum is confirmed" in part(html, "balance")
    assert "transposed block erratum not confirmed" in part(html, "story")
    assert "not confirmed" not in part(page_of(runs), "story")


def test_each_claim_is_told_once(html):
    """Its statement is its heading; all else on the page is a link to it."""
    words = text_of(re.sub(r"<(script|style).*?</\1>", "", html, flags=re.DOTALL))
    for claim in CLAIMS:
        assert words.count(to_plain(claim["statement"])) == 1, claim["claim"]


def resting(run, name, alone=None):
    """The run with a verdict on committed rows."""
    (one,) = [claim for claim in run.summary.claims if claim.claim == name]
    own = None if alone is None else replace(one.own, outcome=alone)
    claims = (replace(one, rests_on="committed", committed=one.own, own=own),)
    return replace(run, summary=replace(run.summary, claims=claims))


def test_verdicts_on_committed_rows_are_counted(runs):
    words = part(page_of([resting(runs[0], "two_shortcut_constant")]), "balance")
    assert "1 of the verdicts uses a long run" in words
    assert "Without it" not in words
    assert "a long run" not in part(page_of(runs[:2]), "balance")


@pytest.mark.parametrize(
    ("alone", "counts"),
    [
        (Outcome.HOLDS, "same for 1, open for 0, and different for 0"),
        (Outcome.UNDECIDED, "same for 0, open for 1, and different for 0"),
        (Outcome.FAILS, "same for 0, open for 0, and different for 1"),
    ],
)
def test_what_runs_alone_say_is_told_beside(runs, alone, counts):
    run = resting(runs[0], "two_shortcut_constant", alone)
    assert counts in part(page_of([run]), "balance")


def test_the_story_tells_chapters_with_their_verdicts(html):
    words = part(html, "story")
    first, second = words.split("2. What is reached")
    assert "1. The point at zero What does the Hessian at W = 0 look like?" in first
    assert "HOLDS: two shortcut constant: slope against \\log L" in first
    assert "ratio at depth 2" not in first, "only the numbers asked for"
    assert "UNDECIDED: three shortcut zero" in first
    assert "FAILS as printed: transposed block erratum" in first
    assert "FAILS: two beats three" in second
    assert "Not run yet: theodolite run li2016demystifying/final_losses" in second


def test_the_story_follows_the_numbers(runs):
    numbers = {"slope against $\\log L$": SavedNumber(value=0.73, error=0.02)}
    run = changed(
        runs[0],
        "two_shortcut_constant",
        {"because": "the ratio grows", "numbers": numbers},
        verdict=Outcome.FAILS,
    )
    words = part(page_of([run, runs[1]]), "story")
    assert "0.730 ± 0.020" in words
    assert "FAILS: two shortcut constant" in words


def test_a_paper_without_a_story_has_its_balance_alone(runs):
    summary = runs[2].summary
    paper = replace(summary.paper, story=())
    page = page_of([replace(runs[2], summary=replace(summary, paper=paper))])
    assert 'class="story"' not in page
    assert "1 hold" in part(page, "balance")


def test_every_finding_of_every_story_is_a_claim():
    claims = {
        f"{e.paper.name}/{e.name}/{claim.name}"
        for e in catalogue()
        for claim in e.study.claims
    }
    claims_told = [
        f"{paper.name}/{finding.claim}"
        for paper in papers()
        for chapter in paper.story
        for finding in chapter.findings
    ]
    assert claims_told
    assert [name for name in claims_told if name not in claims] == []
    assert len(claims_told) == len(set(claims_told))


def test_every_story_can_be_drawn_and_touches_every_study():
    for paper in papers():
        texts = [t for chapter in paper.story for t in (chapter.title, chapter.text)]
        assert unrenderable(texts) == []
        studies_told = {f.claim.split("/")[0] for c in paper.story for f in c.findings}
        assert studies_told >= set(paper.studies)

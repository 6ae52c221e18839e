"""The head of a paper: its balance and its story, told by verdicts."""

import re
from dataclasses import replace
from html import unescape

import pytest

from tests.report.papers import INITIAL
from theodolite.core import Outcome
from theodolite.report import render, unrenderable
from theodolite.studies import catalogue, papers


def text_of(html):
    """Words as a reader meets them: formulas by their source, spaces as one."""
    shown = re.sub(r'<svg class="maths"[^>]*aria-label="([^"]*)".*?</svg>', r"\1", html)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", shown)))


def part(html, kind):
    """The balance or the story of the first paper, as words."""
    found = re.search(rf'<section class="{kind}".*?</section>', html, re.DOTALL)
    return text_of(found[0]) if found else ""


@pytest.fixture(scope="module")
def html(summaries):
    return render(summaries)


def changed(summary, name, **changes):
    claims = tuple(
        replace(one, **changes) if one.name == name else one for one in summary.claims
    )
    return replace(summary, claims=claims)


def test_studies_stand_in_the_papers_order(html):
    places = [
        html.index(f'<section class="study" id="r-li2016demystifying--{name}"')
        for name in ("training_error", "initial_condition")
    ]
    assert places == sorted(places)


def test_the_balance_counts_the_papers_own_claims(html):
    words = part(html, "balance")
    assert "Of 5 claims judged, 3 hold, 1 fail, 1 undecided; 1 of 1 errata" in words
    assert "scale quick (2 studies)" in words
    assert "Not run yet: final_losses" in words


def test_the_balance_says_what_fails_and_why(html):
    fails = part(html, "balance").partition("What fails")[2]
    fails, _, rest = fails.partition("What stays undecided")
    assert "2-shortcut networks end with lower training error" in fails
    assert "The paired difference over 16 networks is" in fails
    assert "0.0021 ± 0.0041" in fails
    undecided, _, errata = rest.partition("What the authors got wrong")
    assert "Derivatives of order 3 were taken at depth 3 only" in undecided
    assert r"(P_k\Sigma P_l^\top)" in errata
    assert r"(Q_k\Sigma Q_l^\top)" in errata


def test_an_erratum_that_is_not_confirmed_is_said_to_be(summaries):
    run = changed(summaries[0], "transposed_block", verdict=Outcome.FAILS)
    words = part(render([run]), "balance")
    assert "0 of 1 errata are confirmed" in words
    assert "(not confirmed: FAILS)" in words
    assert "not confirmed" not in part(render(summaries), "balance")


def test_verdicts_on_committed_rows_are_counted(summaries):
    run = changed(summaries[0], "two_shortcut_constant", rests_on="committed")
    words = part(render([run]), "balance")
    assert "1 of the verdicts rest on paper-scale rows" in words
    assert "alone" not in words
    assert "Conditioning at the initial point (1)" in words
    assert "rest on paper-scale" not in part(render(summaries), "balance")


@pytest.mark.parametrize(
    ("alone", "counts"),
    [
        (Outcome.HOLDS, "same of 1, leave 0 undecided and say otherwise of 0"),
        (Outcome.UNDECIDED, "same of 0, leave 1 undecided and say otherwise of 0"),
        (Outcome.FAILS, "same of 0, leave 0 undecided and say otherwise of 1"),
    ],
)
def test_what_runs_alone_say_is_told_beside(summaries, alone, counts):
    run = changed(
        summaries[0], "two_shortcut_constant", rests_on="committed", alone=alone
    )
    assert counts in part(render([run]), "balance")


def test_the_story_tells_chapters_with_their_verdicts(html):
    words = part(html, "story")
    first, second = words.split("2. What is reached")
    assert "1. The point at zero What does the Hessian at W = 0 look like?" in first
    assert "HOLDS: The largest relative gap" in first
    assert "Slope against" in first or "slope against" in first
    assert "ratio at depth 2" not in first, "only the numbers asked for"
    assert "UNDECIDED: For n \\geq 3 the zero point" in first
    assert "Appendix A, Eq 22, erratum HOLDS" in first
    assert "FAILS: 2-shortcut networks end with lower training error" in second
    assert "p-value: 0.6124" in second
    assert "Not run yet: theodolite run li2016demystifying/final_losses" in second


def test_the_story_follows_the_numbers(summaries):
    numbers = {"slope against $\\log L$": (0.73, 0.02)}
    run = changed(
        summaries[0],
        "two_shortcut_constant",
        verdict=Outcome.FAILS,
        because="the ratio grows",
        numbers=numbers,
    )
    words = part(render([run, summaries[1]]), "story")
    assert "0.730 ± 0.020" in words
    assert "FAILS: With 2-shortcuts and zero weights" in words
    assert "The ratio grows." in words


def test_a_paper_without_a_story_has_its_balance_alone(summaries):
    page = render([summaries[2]])
    assert 'class="story"' not in page
    assert "1 hold" in part(page, "balance")


def test_a_summary_from_before_there_were_stories_is_read(summaries):
    page = render([replace(one, story=(), studies=()) for one in summaries[:2]])
    assert 'class="story"' not in page
    assert INITIAL["study"]["title"] in page


def test_every_finding_of_every_story_is_a_claim():
    claims = {
        f"{e.paper.name}/{e.name}/{claim.name}"
        for e in catalogue()
        for claim in e.study.claims
    }
    told = [
        f"{paper.name}/{finding.claim}"
        for paper in papers()
        for chapter in paper.story
        for finding in chapter.findings
    ]
    assert told
    assert [name for name in told if name not in claims] == []
    assert len(told) == len(set(told))


def test_every_story_can_be_drawn_and_touches_every_study():
    for paper in papers():
        texts = [t for chapter in paper.story for t in (chapter.title, chapter.text)]
        assert unrenderable(texts) == []
        told = {f.claim.split("/")[0] for c in paper.story for f in c.findings}
        assert told >= set(paper.studies)

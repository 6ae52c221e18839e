"""The front page as text: the tally, and links to a page per paper and back."""

import re
from dataclasses import replace
from urllib.parse import unquote

import pytest

from tests.report.test_page import EVIL, HTTP, Page
from theodolite.report import render

NAMES = ["report.html", "report-li2016demystifying.html", "report-orhan2018skip.html"]


@pytest.fixture(scope="module")
def runs(runs_of_two_papers):
    return runs_of_two_papers


@pytest.fixture(scope="module")
def pages(runs):
    return render(runs)


def links(html):
    """Addresses that lead out of a page."""
    return {a["href"] for a in Page(html).all("a") if not a["href"].startswith("#")}


def test_pages_lead_to_one_another(pages):
    assert list(pages) == NAMES
    front, *papers = pages.values()
    assert links(front) == set(NAMES[1:])
    assert all(links(html) == {"report.html"} for html in papers)


def test_each_page_loads_nothing(pages):
    for html in pages.values():
        page = Page(html)
        assert not page.stack, "every element is closed"
        assert len(page.values("id")) == len(set(page.values("id")))
        assert page.values("src") == []
        assert not HTTP.search(html)
        assert "default-src 'none'" in html


def test_a_page_shows_its_paper_alone(pages):
    front, li, orhan = pages.values()
    assert "fewer degenerate eigenvalues than plain" in orhan
    assert "fewer degenerate eigenvalues than plain" not in li + front
    assert "Orhan &amp; Pitkow, 2018" in front
    assert "Orhan &amp; Pitkow, 2018" not in li


def test_the_tally_counts_all_papers(pages):
    html = pages["report.html"]
    for number, word in ((4, "HOLDS"), (1, "FAILS"), (1, "UNDECIDED")):
        assert re.search(
            rf'figure">{number}</span><span class="word"><svg.*?</svg> {word}<', html
        )
    assert re.search(r'figure">1</span><span class="word">Errata confirmed', html)
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))
    for said in (
        "2 papers, 3 studies, 9 verdicts",
        "of 6 claims of the papers",
        "of 2 found",
        "2 of the 6 verdicts depend on a margin or choice of ours",
        "1 verdict uses a long run that comes with the package",
        "5 claims: 3 hold, 1 fail, 1 undecided. 1 of 1 erratum confirmed.",
        "1 claim: 1 hold, 0 fail, 0 undecided. 0 of 1 erratum confirmed.",
        "2 studies at scale quick; 1 not run yet",
    ):
        assert said in words, said


@pytest.mark.parametrize("front", ["a b.html", "50%.html", "a#b?.html", "a:b", "x.y.z"])
def test_links_lead_to_files_of_any_name(runs, front):
    pages = render(runs, front)
    first, *papers = pages
    assert first == front
    assert {unquote(address) for address in links(pages[front])} == set(papers)
    for name in papers:
        assert not any(
            mark in address for address in links(pages[name]) for mark in ":#?"
        )
        assert {unquote(address) for address in links(pages[name])} == {front}


def test_the_name_of_a_paper_cannot_lead_elsewhere(runs):
    def named(name):
        paper = replace(runs[0].summary.paper, name=name)
        return replace(runs[0], summary=replace(runs[0].summary, paper=paper))

    wanted = ["../../etc", EVIL, "", "a/b", "a b", "CON.html"]
    _, *names = render([named(name) for name in wanted])
    assert len(set(names)) == len(wanted)
    assert all(re.fullmatch(r"report-[A-Za-z0-9_-]+\.html", name) for name in names)


def test_the_same_runs_give_the_same_pages(runs, pages):
    assert render(reversed(runs)) == pages

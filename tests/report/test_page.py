"""The page as text: its structure, its safety, what it says."""

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from tests.report.papers import CLAIMS, STUDIES, page_of
from theodolite.core import Choice, Outcome, SavedNumber, our_margin
from theodolite.core.summary import SavedStudy
from theodolite.report.layout import groups
from theodolite.report.page import SCRIPTS

VOID = {"meta", "br", "hr", "img", "input", "link"}
HTTP = re.compile(r"https?:|//[a-z]", re.IGNORECASE)


class Page(HTMLParser):
    """Every element with its attributes, and the text inside each article."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.stack, self.text = [], [], Counter()
        self.articles, self.rest = {}, ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        opened, _ = self.stack.pop()
        assert opened == tag, f"<{opened}> closed by </{tag}>"

    def handle_data(self, data):
        for tag, attributes in self.stack:
            if tag == "article":
                name = attributes["id"]
                self.articles[name] = self.articles.get(name, "") + data

    def all(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]

    def values(self, name):
        return [a[name] for _, a in self.elements if a.get(name) is not None]


@pytest.fixture(scope="module")
def html(runs):
    return page_of(runs)


@pytest.fixture(scope="module")
def page(html):
    parsed = Page(html)
    assert not parsed.stack, "every element is closed"
    return parsed


def test_every_identifier_is_unique(page):
    counts = Counter(page.values("id"))
    assert [name for name, times in counts.items() if times > 1] == []


def test_every_link_leads_somewhere_in_the_page(page):
    names = set(page.values("id"))
    targets = page.values("href")
    assert len(targets) > 100
    elsewhere = [t for t in targets if not (t[0] == "#" and t[1:] in names)]
    assert elsewhere == ["report.html"] * 2, "the front page, at head and contents"
    assert set(page.values("data-of")) <= names
    for attribute in ("aria-labelledby", "aria-controls", "for"):
        assert set(page.values(attribute)) <= names
    assert (
        set(re.findall(r"url\(#([^)]+)\)", " ".join(page.values("clip-path")))) <= names
    )


def test_nothing_is_loaded(page, html):
    assert page.all("link", "iframe", "object", "embed", "base", "img") == []
    assert page.values("src") == []
    assert not HTTP.search(html)
    assert "@import" not in html
    assert "@font-face" not in html
    assert all(u.startswith("#") for u in re.findall(r"url\(\s*['\"]?([^)]*)", html))


def test_a_policy_forbids_loading_and_any_script_but_ours(page):
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", policy)


def test_landmarks_headings_and_language(page):
    tags = [tag for tag, _ in page.elements]
    for once in ("h1", "main", "footer", "title"):
        assert tags.count(once) == (1 if once != "title" else tags.count("title"))
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert page.all("html") == [{"lang": "en-GB"}]
    assert any("width=device-width" in m.get("content", "") for m in page.all("meta"))


def test_table_headers_have_a_scope_and_drawings_a_name(page):
    assert page.all("th")
    assert all("scope" in th for th in page.all("th"))
    for svg in page.all("svg"):
        named = "aria-label" in svg or "aria-labelledby" in svg
        assert named == (svg.get("role") == "img")
        assert named or svg.get("aria-hidden") == "true"
    assert all("aria-label" in one for one in page.all("button") if "theme" in one)
    assert len(page.all("select")) == 3


def test_every_claim_has_its_article_and_its_mark(page):
    articles = [a for a in page.all("article") if "claim" in a["class"]]
    assert len(articles) == len(CLAIMS)
    marks = {a["href"][1:]: a for a in page.all("a") if "mark" in a.get("class", "")}
    assert set(marks) == {a["id"] for a in articles}
    for article in articles:
        claim = next(c for c in CLAIMS if article["id"].endswith(f"--{c['claim']}"))
        words = page.articles[article["id"]]
        assert article["data-verdict"] == claim["verdict"]
        assert claim["verdict"] in words
        assert claim["place"] in words
        assert claim["claim"] in words
        assert claim["place"] in marks[article["id"]]["title"]
        assert article["data-kind"] == claim["kind"]
        assert article["data-rests"] == claim["rests_on"]
        assert claim["verdict"] in marks[article["id"]]["title"]


def test_every_verdict_is_drawn(html, page):
    drawn = [a["aria-label"] for a in page.all("svg") if a.get("class") == "gauge"]
    # One per claim, and another for the correction that is judged.
    assert len(drawn) == len(CLAIMS) + 1
    for claim in CLAIMS:
        ruling = claim["committed"] or claim["own"]
        name = ruling["judged"].get("name") or "slope of the ratio"
        assert any(name in label and claim["verdict"] in label for label in drawn)
    (both,) = [label for label in drawn if "committed:" in label]
    assert both == (
        "this run: plain less residual 0.2 [−0.271, 0.671], UNDECIDED; committed: "
        "plain less residual 0.231 [0.203, 0.259], HOLDS. Claimed region: > 0."
    )
    # What decides is drawn; all the numbers stand folded in a table.
    assert html.count('<details class="numbers-of">') == 1
    assert "All 2 numbers, this run; 2 say HOLDS" in html
    # One strip per claim and reading in its heading, one per line of the table, and
    # one per row of a gauge, of which that with a committed run has two.
    in_gauges = len(drawn) + 1
    assert html.count('<svg class="strip ') == len(CLAIMS) + 1 + 2 + in_gauges


@pytest.mark.parametrize(
    "words",
    [
        "theodolite run li2016demystifying/initial_condition --scale quick",
        "1.4698213 ± 1.2 × 10⁻¹²",
        "182.4 ± 1.1",
        "(1.310 ± 0.040) × 10⁻⁷",
        "Demystifying ResNet",
        "2, 4, 8, 16",
        "0123abc",
        "24 s",
        "Of 6 claims judged",
        "2 verdicts depend on a margin or choice of ours",
        "1 of the verdicts uses a long run that comes with the package",
        "Erratum (false), confirmed",
        "Erratum (false), not confirmed",
        "Beyond the paper",
        "as we state it",
        "as the paper has it",
        "what rounding allows",
        "The region [-0.05, 0.05] is ours: a factor of 1.2 over all depths; the ",
        "turns at a margin of 0.00526",
        "the paper does not say",
        "about 13 networks per point would decide it",
        "this run alone says UNDECIDED",
        "1 of 2 errata are confirmed",
        "Printed</dt>",
        "Corrected</dt>",
        "here they are the 64 pixels of digits",
        "2026-03-02",
    ],
)
def test_it_says(html, words):
    assert words in html


def test_formulas_are_set_and_none_is_left_as_source(html, page):
    assert 'class="latex"' not in html
    labels = set(page.values("alttext"))
    assert r"\mathrm{cond}(H)=\sqrt{\mathrm{cond}(M^\top M)}" in labels
    # No dollar signs remain but those of scripts and styles.
    body = re.sub(r"<(script|style)>.*?</\1>", "", html, flags=re.DOTALL)
    assert "$" not in body


def test_the_same_input_gives_the_same_page(runs, html):
    assert page_of(runs) == html
    assert page_of(reversed(runs)) == html


def changed(run, **changes):
    """The run with another summary."""
    return replace(run, summary=replace(run.summary, **changes))


def test_the_run_judged_last_wins(runs):
    first = runs[0]
    study = first.summary.study
    older, newer = (
        changed(first, study=replace(study, summary=text), judged=f"{year}-01-01")
        for text, year in (("an older text", 2025), ("a newer text", 2027))
    )
    html = page_of([older, newer, first])
    assert "a newer text" in html
    assert "an older text" not in html
    assert html.count("<article") == len(STUDIES[0]["claims"])


EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \"' {{ 7919 * 7907 }} $<b>$"
)


def test_text_of_a_summary_cannot_inject(runs):
    summary = runs[0].summary
    first = summary.claims[3]
    leaf = replace(
        first.ruling.judged, name=EVIL, region=our_margin(0.1, EVIL), turns_at=0.2
    )
    joined = replace(leaf, region=None, pieces=(leaf, leaf), decider=0)
    ruling = replace(
        first.ruling,
        because=EVIL,
        corrected_because=EVIL,
        judged=joined,
        numbers={EVIL: SavedNumber(value=1.0, error=None)},
    )
    texts = ("claim", "place", "statement", "rival", "printed", "corrected", "on")
    claim = replace(
        first,
        **dict.fromkeys(texts, EVIL),
        own=ruling,
        committed=ruling,
        rests_on="committed",
        choices=(Choice(what=EVIL, why=EVIL),),
    )
    figure = replace(summary.figures[0], name=EVIL, caption=EVIL, source=EVIL)
    run = changed(
        replace(runs[0], info={"config": {EVIL: EVIL}, "commit": EVIL, "device": EVIL}),
        paper=replace(summary.paper, name=EVIL, title=EVIL, authors=EVIL, url=EVIL),
        study=SavedStudy(name=EVIL, title=EVIL, summary=EVIL, departures=(EVIL,)),
        scale=EVIL,
        judged=EVIL,
        command=EVIL,
        claims=(claim, claim),
        comparison=(replace(summary.comparison[0], label=EVIL),),
        figures=(figure,),
    )
    html = page_of([run])
    page = Page(html)
    assert len(page.all("script")) == 1 + len(SCRIPTS)
    assert page.all("img", "b") == []
    assert not any(name.startswith("on") for _, a in page.elements for name in a)
    assert str(7919 * 7907) not in html
    assert len(page.values("id")) == len(set(page.values("id")))


def test_a_figure_that_is_missing_is_said_to_be(runs):
    assert "This figure is not in the run folder" in page_of([replace(runs[0], svg={})])


def test_an_empty_study_still_makes_a_page(runs):
    study = replace(runs[0].summary.study, departures=())
    run = changed(
        replace(runs[0], info={}), claims=(), comparison=(), figures=(), study=study
    )
    page = Page(page_of([run]))
    assert page.all("article") == []


def test_links_lead_to_the_paper(runs):
    place = "https://arxiv.org/abs/1611.01186"
    paper = replace(runs[0].summary.paper, url=place)
    page = Page(page_of([changed(runs[0], paper=paper)]))
    links = [a for a in page.all("a") if a["href"] == place]
    # One at the head of the paper, one with each claim.
    assert len(links) == 1 + len(runs[0].summary.claims)
    assert all(a["rel"] == "noreferrer" for a in links)


@pytest.mark.parametrize(
    "url", ["javascript:x()", "data:text/html,x", "//a", "a b", ""]
)
def test_what_is_no_address_of_the_web_is_no_link(runs, url):
    paper = replace(runs[0].summary.paper, url=url)
    page = Page(page_of([changed(runs[0], paper=paper)]))
    assert {a["href"] for a in page.all("a") if a["href"][0] != "#"} == {"report.html"}


def test_a_paper_that_nobody_here_knows(runs):
    """Of others' studies there may be nothing but a name, a title and verdicts."""
    paper = replace(
        runs[0].summary.paper, name="mine", authors="", studies=(), story=(), url=""
    )
    html = page_of([changed(runs[0], paper=paper)])
    page = Page(html)
    assert "mine/initial_condition" in html
    assert len(page.all("article")) == len(STUDIES[0]["claims"])
    assert "r-mine-story" not in page.values("id")


def figures_of(run, **sources):
    """The run with one figure under several names, of these runs."""
    (one,) = run.summary.figures
    files = tuple(
        replace(one, name=name, caption=f"Seen here. Drawn from {origin}.", source=who)
        for name, (who, origin) in sources.items()
    )
    return changed(run, figures=files)


def test_captions_say_which_run_is_drawn(runs):
    committed = "the committed run at paper scale on CIFAR-10"
    html = page_of(
        [
            figures_of(
                runs[0],
                a=("committed", committed),
                a_here=("own", "this run at scale quick"),
                b=("", "this run"),
            )
        ]
    )
    captions = re.findall(r"<figcaption><strong>([^<]*)</strong> ([^<]*)<", html)
    assert captions == [
        (f"{committed.capitalize().replace('cifar', 'CIFAR')}.", "Seen here."),
        ("This run at scale quick.", "Seen here."),
        ("This run at scale quick.", "Seen here."),
    ]
    # The twin is folded beneath its figure, not beside it.
    assert html.count('<details class="twin">') == 1
    assert "The same of this run at scale quick" in html
    assert "2 figures<" in html


def test_a_long_study_is_folded_by_kind(runs):
    entries = [
        {"claim": claim}
        for run in runs
        for claim in (*run.summary.claims, *run.summary.claims)
    ]
    sections = groups(entries)
    assert [one["title"] for one in sections] == [
        "",
        "6 more claims",
        "4 errata",
        "2 statements beyond it",
    ]
    assert sum(len(one["entries"]) for one in sections) == len(entries)
    assert [one["title"] for one in groups(entries[:7])] == [""]


def test_a_paper_of_many_figures_stays_small(runs):
    """Letters and looks are paid for once: twenty figures are not twenty times one."""
    many = figures_of(runs[0], **{f"f{n}": ("own", "this run") for n in range(20)})
    one = figures_of(runs[0], f=("own", "this run"))
    bare = changed(runs[0], figures=())
    small, large = (len(page_of([run])) - len(page_of([bare])) for run in (one, many))
    assert small > 10_000
    assert large < 13 * small


def test_of_very_many_numbers_those_that_matter_are_shown(runs):
    """The one that decides, those that say otherwise, those that are least sure."""
    claim = runs[0].summary.claims[0]
    sure, other = claim.ruling.judged.pieces
    failing = replace(other, name="one that fails", outcome=Outcome.FAILS)
    close = replace(other, name="one that is close", p_holds=0.04, p_fails=0.9)
    far = replace(sure, name="one that is far", p_holds=1e-9, p_fails=1.0)
    deciding = replace(far, name="one that decides")
    pieces = (*[far] * 30, failing, close, deciding)
    judged = replace(claim.ruling.judged, pieces=pieces, decider=len(pieces) - 1)
    own = replace(claim.own, judged=judged)
    html = page_of([changed(runs[0], claims=(replace(claim, own=own),))])
    (table,) = re.findall(r'<table class="pieces">.*?</table>', html, re.DOTALL)
    named = re.findall(r'<th scope="row">([^<]*?) ?<', table)
    assert named == ["one that is far"] * 5 + [
        "one that fails",
        "one that is close",
        "one that decides",
    ]
    assert "8 of 33 numbers, this run; 32 say HOLDS" in html
    assert "The other 25 are in <code>summary.json</code>" in html


@pytest.mark.parametrize("n", [2, 5])
def test_readings_are_seen_and_many_are_folded(runs, n):
    claim = runs[0].summary.claims[0]
    piece = replace(claim.ruling.judged.pieces[0], name="of Eq 16; as drawn")
    judged = replace(claim.ruling.judged, rule="readings", pieces=(piece,) * n)
    own = replace(claim.own, judged=replace(judged, decider=0))
    html = page_of([changed(runs[0], claims=(replace(claim, own=own),))])
    (seen,) = re.findall(r'<div class="seen">.*?</article>', html, re.DOTALL)
    assert "<dt>Readings</dt>" in seen
    said = " · ".join(["as drawn"] * n)
    assert (
        f'<span class="word holds">HOLDS</span> in {n}: of Eq 16: {said}</dd>' in seen
    )
    assert (f"<summary>{n} readings</summary>" in seen) == (n > 4)

"""The page as text: its structure, its safety, what it says."""

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from tests.report.papers import CLAIMS, STUDIES
from theodolite.report import render

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
def html(summaries):
    return render(summaries)


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
    assert [t for t in targets if not (t[0] == "#" and t[1:] in names)] == []
    for attribute in ("aria-labelledby", "for"):
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
    assert all(
        "aria-label" in one or "aria-pressed" in one for one in page.all("button")
    )


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
        assert claim["statement"].split("$")[0] in marks[article["id"]]["title"]
        assert claim["verdict"] in marks[article["id"]]["aria-label"]


@pytest.mark.parametrize(
    "words",
    [
        "theodolite run li2016demystifying/initial_condition --scale quick",
        "1.4698213 ± 1.2 × 10⁻¹²",
        "182.4 ± 1.1",
        "(1.310 ± 0.040) × 10⁻⁷",
        "Demystifying ResNet",
        "Orhan &amp; Pitkow, 2018",
        "2, 4, 8, 16",
        "0123abc",
        "24 s",
        "of 6 claims",
        "of 2 found",
        "Printed</dt>",
        "Corrected</dt>",
        "here they are the 64 pixels of digits",
        "2026-03-02",
    ],
)
def test_it_says(html, words):
    assert words in html


def test_formulas_are_drawn_and_none_is_left_as_source(html, page):
    assert 'class="latex"' not in html
    labels = {one.get("aria-label") for one in page.all("svg")}
    assert r"\mathrm{cond}(H)=\sqrt{\mathrm{cond}(M^\top M)}" in labels
    # No dollar signs remain but those of scripts and styles.
    body = re.sub(r"<(script|style)>.*?</\1>", "", html, flags=re.DOTALL)
    assert "$" not in body


def test_counts(html):
    for number, word in ((4, "HOLDS"), (1, "FAILS"), (1, "UNDECIDED")):
        assert re.search(
            rf'figure">{number}</span><span class="word"><svg.*?</svg> {word}<', html
        )
    assert re.search(r'figure">1</span><span class="word">Errata confirmed', html)


def test_the_same_input_gives_the_same_page(summaries, html):
    assert render(summaries) == html
    assert render(reversed(summaries)) == html


def test_the_run_judged_last_wins(summaries):
    first = summaries[0]
    older = replace(first, text="an older text", judged="2025-01-01T00:00:00Z")
    newer = replace(first, text="a newer text", judged="2027-01-01T00:00:00Z")
    html = render([older, newer, first])
    assert "a newer text" in html
    assert "an older text" not in html
    assert html.count("<article") == len(STUDIES[0]["claims"])


EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)> \"' {{ 7 * 7 }} $<b>$"


def test_text_of_a_summary_cannot_inject(summaries):
    claim = replace(
        summaries[0].claims[0],
        name=EVIL,
        place=EVIL,
        statement=EVIL,
        because=EVIL,
        rival=EVIL,
        printed=EVIL,
        corrected=EVIL,
        numbers={EVIL: (1.0, None)},
    )
    texts = dict.fromkeys(
        ("paper", "paper_title", "authors", "study", "title", "text", "scale"), EVIL
    )
    run = replace(
        summaries[0],
        **texts,
        judged=EVIL,
        command=EVIL,
        claims=(claim, claim),
        departures=(EVIL,),
        comparison=(replace(summaries[0].comparison[0], label=EVIL),),
        drawings=(replace(summaries[0].drawings[0], name=EVIL, caption=EVIL),),
        info={"config": {EVIL: EVIL}, "commit": EVIL, "device": EVIL},
    )
    html = render([run])
    page = Page(html)
    assert len(page.all("script")) == 1
    assert page.all("img", "b") == []
    assert not any(name.startswith("on") for _, a in page.elements for name in a)
    assert (
        "49"
        not in re.sub(r'd="[^"]*"', "", html).split("</style>")[1].split("<figure")[0]
    )
    assert len(page.values("id")) == len(set(page.values("id")))


def test_a_figure_that_is_missing_is_said_to_be(summaries):
    (drawing,) = summaries[0].drawings
    run = replace(summaries[0], drawings=(replace(drawing, svg=""),))
    assert "This figure is not in the run folder" in render([run])


def test_an_empty_study_still_makes_a_page(summaries):
    run = replace(
        summaries[0], claims=(), comparison=(), drawings=(), departures=(), info={}
    )
    page = Page(render([run]))
    assert page.all("article") == []

"""The interactive part of a paper as text: what comes with it, and what cannot."""

import json
import re

import pytest

from tests.report import papers
from tests.report.ensembles import PAPER, exhibit, measured
from tests.report.test_page import EVIL, HTTP, Page
from theodolite.core import parse_summary
from theodolite.report.explorers import EXPLORER_SCRIPTS
from theodolite.report.finished_runs import JudgedRun
from theodolite.report.page import SCRIPTS

MOST_BYTES = 60_000
N_SCRIPTS = 1 + len(SCRIPTS) + len(EXPLORER_SCRIPTS["path_ensemble"])


def page_of(study):
    """The page on one run."""
    summary = parse_summary(json.dumps(study), source="summary.json")
    return papers.page_of([JudgedRun(summary=summary)])


def tables_in(html):
    (text,) = re.findall(r'class="explorer-data">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


@pytest.fixture(scope="module")
def html():
    return page_of(measured([exhibit()]))


def without_explorer(**paper):
    study = measured([exhibit()])
    return page_of({**study, "paper": {**PAPER, "explorer": None, **paper}})


def test_it_stands_in_the_paper_whole_and_loads_nothing(html):
    page = Page(html)
    assert not page.stack, "every element is closed"
    assert len(page.values("id")) == len(set(page.values("id")))
    assert set(page.values("for")) <= set(page.values("id"))
    assert page.values("src") == []
    assert not HTTP.search(html)
    (section,) = [a for a in page.all("section") if a.get("class") == "explorer"]
    assert section["data-explorer"] == "path_ensemble"


def test_the_policy_names_every_script(html):
    policy = re.search(r"script-src ([^;\"]*)", html)[1].split()
    assert len(policy) == len(set(policy)) == N_SCRIPTS
    assert all(re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", one) for one in policy)
    assert len(re.findall(r"<script>", html)) == len(policy)


def test_it_is_small():
    study = measured([])
    bare = {**study, "paper": {**PAPER, "explorer": None}}
    assert 0 < len(page_of(study)) - len(page_of(bare)) < MOST_BYTES


def test_every_control_has_a_label(html):
    page = Page(html)
    labelled = set(page.values("for"))
    for one in [*page.all("input"), *page.all("select")]:
        named = one.get("id") in labelled or "aria-label" in one
        assert named or one["type"] == "radio", one


def test_the_rows_come_along_to_seven_digits():
    third = ["share", "net", "output", 0, None, 1 / 3, None]
    html = page_of(measured([exhibit(lines=[third])]))
    (table,) = tables_in(html)["path_ensembles"]
    assert table["study"] == "measured_ensemble"
    assert table["source"] == "own"
    line = dict(zip(table["columns"], table["lines"][0], strict=True))
    words = {name: texts[line[name]] for name, texts in table["texts"].items() if texts}
    assert {**line, **words} == {
        "quantity": "share",
        "network": "net",
        "part": "output",
        "length": 0,
        "step": None,
        "value": 0.3333333,
        "error": None,
    }


def test_studies_without_an_exhibit_are_named_with_their_command(html):
    command = "theodolite run littwin2016loss"
    assert f"<code>{command}/depth_along_training</code>" in html
    assert f"<code>{command}/measured_ensemble</code>" not in html
    assert f"<code>{command}/measured_ensemble</code>" in page_of(measured([]))


@pytest.mark.parametrize("name", ["no_such", "../script", EVIL])
def test_a_name_that_is_not_known_adds_nothing(name):
    html = without_explorer(explorer={"name": name, "studies": []})
    assert html == without_explorer()
    assert 'class="explorer"' not in html


def test_rows_cannot_inject():
    lines = [[EVIL if one == "narrow" else one for one in line]
             for line in exhibit()["lines"]]  # fmt: skip
    other = exhibit(name=EVIL, columns=[EVIL], lines=[[EVIL]])
    study = measured([exhibit(lines=lines), other])
    study["paper"] = {**PAPER, "explorer": {"name": "path_ensemble", "studies": [EVIL]}}
    html = page_of(study)
    page = Page(html)
    assert len(page.all("script")) == N_SCRIPTS + 1, "ours, and the data"
    assert page.all("img") == []
    assert not any(name.startswith("on") for _, a in page.elements for name in a)
    assert EVIL in tables_in(html), "as data it is whole"

"""Pages of surveys, comparisons and trainings, as text."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from tests.survey.cases import by_hand
from tests.survey.deep import altered, deep
from theodolite.core import MeasurementError, Rows, RunError
from theodolite.survey import Block, Survey, compare
from theodolite.survey.page.writing import page_of, write_page
from theodolite.survey.watching.course import Course

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def survey():
    return by_hand()


@pytest.fixture(scope="module")
def page(survey):
    return page_of(survey)


class Reader(HTMLParser):
    """Ids, links and the text that a reader without scripts sees."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.targets, self.outside, self.text = [], [], [], ""
        self._hidden = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.ids += [named["id"]] if "id" in named else []
        self.targets += [v for k, v in attrs if k == "href"]
        self.outside += [v for k, v in attrs if k in ("src", "href") and "//" in v]
        self._hidden = tag if tag in ("script", "style") else self._hidden

    def handle_endtag(self, tag):
        self._hidden = None if tag == self._hidden else self._hidden

    def handle_data(self, data):
        self.text += "" if self._hidden else data


def test_the_page_is_readable_without_scripts(survey, page):
    told = Reader(page).text
    for finding in survey.findings:
        assert finding.title in told
        assert finding.says in told
    assert "2.50 ± 0.20" in told
    assert "the rule fires above 1" in told
    assert "classical: a quadratic diverges above 2/λmax" in told
    assert "group['lr'] = 0.3" in told
    assert "layers.1.pool: jacobian cannot differentiate it" in told
    assert "The inputs were made up. 64 images of 3 × 32 × 32" in told
    assert "It takes 24 gradients or more: give effort=400" in told
    for block in survey.blocks:
        assert block.name in told


def test_every_link_leads_somewhere_and_nothing_outside(page):
    reader = Reader(page)
    assert len(set(reader.ids)) == len(reader.ids)
    assert {t[1:] for t in reader.targets} <= set(reader.ids)
    assert reader.outside == []
    assert "url(" not in page
    assert "@import" not in page


def test_findings_come_before_everything_measured(page):
    order = ("findings", "advice", "section", "pictures", "missing", "numbers")
    places = [page.index(f'<section id="{name}"') for name in order]
    assert places == sorted(places)


def test_a_hostile_name_stays_text(survey):
    evil = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(2)>"
    blocks = (Block(index=0, name=evil, kind=evil, norms=(f"{evil}:{evil}",)),)
    shown = page_of(replace(survey, title=evil, blocks=blocks, unsupported=(evil,)))
    assert "<img" not in shown
    assert shown.count("<script") == page_of(survey).count("<script")
    held = re.search(r'id="data">(.*?)</script>', shown, re.DOTALL)
    assert json.loads(held[1])["title"] == evil


@pytest.fixture(scope="module")
def two_deep():
    one = deep(200)
    return page_of(compare(one, altered(one)))


def test_two_deep_networks_stay_below_three_megabytes(two_deep):
    assert len(two_deep.encode()) < 3 * MEGABYTE


def test_deeper_still_spectra_give_way_and_numbers_stay():
    shown = page_of(deep(451))
    assert len(shown.encode()) < 3 * MEGABYTE
    last = shown[shown.index('id="block-450"') : shown.index('id="pictures"')]
    assert "Forward signal" in last
    assert "<svg" not in last
    assert '<svg class="chart"' in page_of(deep(3)).partition('id="pictures"')[0]


def test_names_of_200_columns_do_not_run_into_one_another(two_deep):
    names = re.search(r'<g class="names">(.*?)</g>', two_deep, re.DOTALL)[1]
    places = [float(x) for x in re.findall(r"translate\(([\d.]+) ", names)]
    gaps = [b - a for a, b in pairwise(places)]
    assert len(places) > 20
    assert min(gaps) >= 17


def test_nothing_measured_is_said_not_hidden():
    empty = Survey(title="Empty", n_parameters=3, blocks=(), measured=())
    told = Reader(page_of(empty)).text
    assert "No rule fired." in told
    with pytest.raises(MeasurementError, match="no number by depth"):
        empty.plot()


def test_a_share_of_nothing_is_seen_to_be_measured(survey):
    units = survey.outcome("units")
    none = replace(units, rows=Rows({**row, "value": 0.0} for row in units.rows))
    others = [one for one in survey.measured if one is not units]
    shown = page_of(replace(survey, measured=(*others, none)))
    track = shown.partition('<g class="track bars">')[2]
    bars = re.search(r'<path class="bar" d="([^"]*)"', track)[1]
    heights = [float(tall) for tall in re.findall(r"v([\d.]+)", bars)]
    assert heights
    assert min(heights) >= 1


def test_numbers_that_are_not_finite_are_told(survey):
    rows = [{**r, "value": float("nan")} for r in survey.outcome("signal").rows]
    measured = tuple(
        replace(one, rows=Rows(rows)) if one.measure == "signal" else one
        for one in survey.measured
    )
    finding = replace(survey.findings[0], value=float("inf"), error=None)
    odd = replace(survey, measured=measured, findings=(finding,))
    told = Reader(page_of(odd)).text
    assert "∞" in told
    assert "nan" in told
    assert len(odd.plot().axes) >= 3


def test_a_page_that_cannot_be_written_is_one_sentence(survey, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="pass another destination"):
        survey.to_html(tmp_path / "file" / "page.html")
    write_page(survey, tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_the_same_survey_gives_the_same_page(survey, page):
    assert page_of(Survey.from_dict(survey.to_dict())) == page


def test_two_sides_are_drawn_on_one_scale():
    low, high = deep(6, growth=0.0), deep(6, growth=1.0)
    shown = page_of(compare(low, high))
    ticks = [
        re.findall(r'<text x="52" y="[\d.]+" text-anchor="end">([^<]+)</text>', drawn)
        for drawn in re.findall(r'<svg class="section".*?</svg>', shown, re.DOTALL)
    ]
    assert len(ticks) == 2
    assert len(ticks[0]) > 8
    assert ticks[0] == ticks[1]


def test_a_long_training_is_thinned_and_keeps_its_end():
    rows = [
        {"quantity": "loss", "value": 1.0 / (1 + step), "error": None, "step": step}
        for step in range(5000)
    ]
    course = Course(title="net", every=1, steps=5000, measured=Rows(rows))
    shown = page_of(course)
    drawn = re.search(r'<path class="stroke" d="([^"]+)"', shown)[1]
    assert 300 < drawn.count("L") <= 600
    assert "at 4999" in shown
    assert len(shown) < 0.5 * MEGABYTE

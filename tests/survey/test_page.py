"""Pages of surveys, as text."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tests.survey.cases import by_depth, by_hand, row
from tests.survey.test_records import TRIALS
from theodolite.core import Rows, RunError
from theodolite.survey import Block, Measured, Survey
from theodolite.survey.page.survey_page import survey_page as page_of
from theodolite.survey.page.survey_page import write_page


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
    assert "the rule fires above 1." in told
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


def test_findings_come_before_everything_measured_and_unsupported(page):
    order = ("findings", "advice", "pictures", "depth", "missing", "numbers")
    places = [page.index(f'<section id="{name}"') for name in order]
    assert places == sorted(places)
    assert page.index("jacobian cannot differentiate it") > places[4]


def test_a_hostile_name_stays_text(survey):
    evil = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(2)>"
    blocks = (Block(index=0, name=evil, kind=evil, norms=(f"{evil}:{evil}",)),)
    shown = page_of(replace(survey, title=evil, blocks=blocks, unsupported=(evil,)))
    assert "<img" not in shown
    assert shown.count("<script") == page_of(survey).count("<script")
    held = re.search(r'id="data">(.*?)</script>', shown, re.DOTALL)
    assert json.loads(held[1])["title"] == evil


def deep(n_blocks):
    """Return a survey of a residual network of so many blocks."""
    base = by_hand()
    blocks = tuple(
        replace(base.blocks[1], index=index, name=f"layer{index // 50}.{index}")
        for index in range(n_blocks)
    )
    rows = [
        row("signal", quantity, 1.02**index, 0.1, block=block.name, depth=index)
        for index, block in enumerate(blocks)
        for quantity in ("forward_rms", "backward_rms", "branch_gain")
    ]
    return replace(measured_by(base, "signal", rows), blocks=blocks)


def test_a_deep_network_stays_below_half_a_megabyte():
    assert len(page_of(deep(200)).encode()) < 500_000


def test_nothing_measured_is_said_not_hidden():
    empty = Survey(title="Empty", n_parameters=3, blocks=(), measured=())
    told = Reader(page_of(empty)).text
    assert "Nothing was checked." in told


def test_a_share_of_nothing_is_seen_to_be_measured(survey):
    units = survey.outcome("units")
    none = replace(units, rows=Rows({**row, "value": 0.0} for row in units.rows))
    others = [one for one in survey.measured if one is not units]
    shown = page_of(replace(survey, measured=(*others, none)))
    chart, _ = chart_of(shown, "Dead units by module")
    assert "all 1 activations: 0 %" in chart
    assert float(re.search(r'<path d="M[\d.]+ [\d.]+h([\d.]+)v', chart)[1]) >= 1


def measured_by(survey, measure, rows):
    """Return a survey with other rows of a measure."""
    own = Measured(measure=measure, status="done", rows=Rows(rows))
    others = [one for one in survey.measured if one.measure != measure]
    return replace(survey, measured=(own, *others))


def chart_of(page, label):
    """Return a chart, and the places and heights of its lines."""
    chart = page.partition(f'aria-label="{label}')[2].partition("</svg>")[0]
    strokes = re.findall(r'<path class="stroke" d="([^"]*)"', chart)
    points = [re.findall(r"[ML]([\d.]+) ([\d.]+)", one) for one in strokes]
    return chart, [[(float(x), float(y)) for x, y in one] for one in points]


def test_a_signal_of_1e_34_is_drawn_where_it_is(survey):
    rows = by_depth("signal", "forward_rms", (1.0, 1e-12, 1e-34, 0.0))
    page = page_of(measured_by(survey, "signal", rows))
    chart, (line,) = chart_of(page, "Forward signal by depth")
    first, second, third, zero = (y for _, y in line)
    assert (third - second) / (second - first) == pytest.approx(22 / 12, rel=0.01)
    assert zero > third + 10
    assert f'y="{zero + 4:g}" text-anchor="end">0</text>' in chart


def test_dead_units_are_shown_in_per_cent_also_outside_of_blocks(survey):
    own = row("units", "dead_share", 0.47, 0.011, module="act7")
    finding = replace(
        survey.findings[0],
        quantity="dead_share",
        value=0.47,
        error=0.011,
        threshold=0.25,
    )
    dead = replace(measured_by(survey, "units", [own]), findings=(finding,))
    shown = page_of(dead)
    told = Reader(shown).text
    assert "47.0 ± 1.1 %; the rule fires above 25 %." in told.replace("\n", " ")
    assert "act7: 47 %" in shown.partition('aria-label="Dead units by module"')[2]
    assert "Nothing wrong" not in told


def test_a_curvature_within_its_error_is_not_resolved_on_the_page(survey):
    rows = [
        row("curvature", "largest_eigenvalue", -0.83, 340.0, rank=0),
        row("curvature", "forward_correlation", -0.002, 0.0036),
    ]
    told = Reader(page_of(measured_by(survey, "curvature", rows))).text
    assert "not resolved (0 ± 340)" in told
    assert "−0.0020 ± 0.0036" in told


def test_a_sound_network_is_told_what_was_checked(survey):
    told = Reader(page_of(replace(survey, findings=()))).text
    assert "Nothing wrong found; checked: map, signal, units" in told


def test_symptoms_are_listed_with_their_cause(survey):
    cause, symptom = survey.findings
    folded = replace(survey, findings=(replace(cause, symptoms=(symptom,)),))
    told = Reader(page_of(folded)).text
    assert f"Repaired on a copy, this clears:\n{symptom.title}" in told


def test_a_check_shows_no_number_that_means_nothing(survey):
    check = replace(survey.findings[0], quantity="check", value=float("inf"))
    told = Reader(page_of(replace(survey, findings=(check,)))).text
    assert "∞" not in told
    assert "the rule fires" not in told
    assert "rate-too-large" in told


def test_trial_losses_are_drawn_by_rate_and_a_loss_that_is_not_finite_is_told(survey):
    trials = replace(
        measured_by(survey, "checks", TRIALS), settings={"optimizer": "SGD"}
    )
    chart, (line,) = chart_of(page_of(trials), "Loss after 10 trial steps")
    assert len(line) == 2
    for name in ("in use", "not finite", "before"):
        assert f">{name}</text>" in chart
    assert "default of Adam" in page_of(measured_by(survey, "checks", TRIALS))


def test_trial_steps_that_are_finite_at_no_rate_are_drawn(survey):
    rows = [{**row, "value": math.inf} if row["step"] else row for row in TRIALS]
    chart, _ = chart_of(
        page_of(measured_by(survey, "checks", rows)), "Loss after 10 trial steps"
    )
    assert chart.count(">not finite</text>") == 2
    assert ">default of Adam, not finite</text>" in chart


def test_the_rate_in_use_stands_beside_the_stable_one(survey):
    shown = page_of(survey)
    bars = re.findall(r'<g class="interval"><title>([^<]*)</title>', shown)
    (own,) = [bar for bar in bars if "in use" in bar]
    assert own.startswith("momentum: 0.76, between")
    assert own.endswith("in use 0.5")
    assert ">0.76 / 0.5</text>" in shown
    assert shown.count('class="mark"') == 1


def test_an_aborted_survey_is_incomplete_on_its_page(survey):
    late = tuple(replace(one, status="out of time") for one in survey.measured[-2:])
    aborted = replace(survey, measured=(*survey.measured[:-2], *late))
    told = Reader(page_of(aborted)).text
    assert (
        "Incomplete. It was aborted: there is no result of tangent, classifier." in told
    )


def test_numbers_that_are_not_finite_are_told(survey):
    rows = [{**r, "value": float("nan")} for r in survey.outcome("signal").rows]
    measured = tuple(
        replace(one, rows=Rows(rows)) if one.measure == "signal" else one
        for one in survey.measured
    )
    finding = replace(survey.findings[0], value=float("inf"), error=None)
    odd = replace(survey, measured=measured, findings=(finding,))
    told = Reader(page_of(odd)).text
    assert "= not finite; the rule" in told
    assert "nan" in told


def test_a_page_that_cannot_be_written_is_one_sentence(survey, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="pass another destination"):
        survey.to_html(tmp_path / "file" / "page.html")
    write_page(survey, tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_the_same_survey_gives_the_same_page(survey, page):
    assert page_of(Survey.from_dict(survey.to_dict())) == page


def test_there_is_no_block_between_two_blocks():
    chart, _ = chart_of(page_of(deep(3)), "Forward signal by depth")
    places = re.findall(r'<text [^>]*text-anchor="middle">([^<]+)</text>', chart)
    assert places[:3] == ["0", "1", "2"]

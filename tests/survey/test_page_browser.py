"""Pages in a real browser, opened from disk."""

import csv
import io
import json

import pytest

from tests.pages.conftest import browser, new_page  # noqa: F401 (a fixture)
from tests.pages.probes import CONTRAST
from tests.survey.cases import by_hand
from tests.survey.test_page import deep
from theodolite.survey import Survey

pytestmark = pytest.mark.browser

WIDTHS = (390, 768, 1400)
# Elements that a person can reach but that show no name to assistive technology.
NAMELESS = """() => [...document.querySelectorAll('button, a[href], [tabindex="0"]')]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.getAttribute('aria-label') || one.textContent).trim())
  .map((one) => one.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def shown():
    return {
        "survey": by_hand(),
        "deep": deep(200),
        "blank": Survey(title="a layer", n_parameters=1, blocks=(), measured=()),
    }


@pytest.fixture(scope="module")
def addresses(shown, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages with spaces")
    for name, one in shown.items():
        one.to_html(folder / f"{name}.html")
    return {name: (folder / f"{name}.html").as_uri() for name in shown}


@pytest.fixture(scope="module")
def visit(browser, addresses):  # noqa: F811
    """Open a page; fail at the end if one complained or asked for anything."""
    opened, complaints, requests = [], [], []

    def visit(name, width=1400, fragment="", **options):
        size = {"width": width, "height": 900}
        page = new_page(browser, viewport=size, reduced_motion="reduce", **options)
        opened.append(page.context)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(addresses[name] + fragment)
        return page

    yield visit
    for context in opened:
        context.close()
    assert complaints == []
    asked = {url.partition("#")[0] for url in requests}
    # Downloads are made in the page.
    assert {one for one in asked if not one.startswith("blob:")} <= {
        *addresses.values()
    }


@pytest.fixture(scope="module")
def wide(visit):
    """One visit of each page, for tests that do not change it for others."""
    return {"survey": visit("survey")}


def downloaded(page, kind):
    with page.expect_download() as caught:
        page.locator(f".toolbar [data-save='{kind}']").click()
    assert caught.value.suggested_filename.endswith(f".{kind}")
    with open(caught.value.path(), newline="", encoding="utf-8") as file:
        return file.read()


def test_the_number_behind_a_finding_shows_on_hover_and_focus(wide):
    page = wide["survey"]
    number = page.locator(".finding .number").first
    tip = number.locator(".tip")
    page.mouse.move(0, 0)
    assert not tip.is_visible()
    number.hover()
    tip.wait_for(state="visible")
    assert "2.50 ± 0.20" in tip.inner_text()
    assert "fires above 1" in tip.inner_text()
    page.mouse.move(0, 0)
    tip.wait_for(state="hidden")
    number.focus()
    tip.wait_for(state="visible")


def test_a_finding_leads_to_its_block(wide):
    page = wide["survey"]
    page.locator(".finding a", has_text="layers.0").click()
    assert page.locator("tr:target th").inner_text() == "layers.0"
    assert "identity" in page.locator("tr:target").inner_text()


def test_csv_holds_every_row(wide, shown):
    text = downloaded(wide["survey"], "csv")
    lines = list(csv.DictReader(io.StringIO(text)))
    rows = list(shown["survey"].rows())
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line["quantity"] == row["quantity"]
        assert float(line["value"]) == row["value"]
        error = None if line["error"] == "" else float(line["error"])
        assert error == row["error"]
        for label in ("block", "module", "norm_mode"):
            assert line[label] == (row.get(label) or "")


def test_json_is_what_to_json_writes(wide, shown):
    assert json.loads(downloaded(wide["survey"], "json")) == shown["survey"].to_dict()


@pytest.mark.parametrize("name", ["survey", "deep", "blank"])
def test_every_width_and_scheme(visit, name):
    page = visit(name, color_scheme="dark")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.reload()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(NAMELESS) == []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        ratios = page.evaluate(CONTRAST)
        assert len(ratios) > 10
        assert [one for one in ratios if one[0] < 4.5] == []


def test_dark_and_light_differ_and_paper_is_white(wide):
    page = wide["survey"]
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.locator(".toolbar .theme").click()
    assert page.evaluate(colour) != light
    page.emulate_media(media="print")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert page.locator(".finding .tip").first.is_visible()
    assert not page.locator(".toolbar").is_visible()
    assert page.pdf(format="A4")[:5] == b"%PDF-"
    page.emulate_media(media="screen")
    page.locator(".toolbar .theme").click()


def test_without_scripts_nothing_is_lost_except_downloads(visit):
    page = visit("survey", java_script_enabled=False)
    assert page.locator("#depth tbody tr:visible").count() == 4
    assert not page.locator("[data-save]").first.is_visible()
    page.locator("#numbers details summary").first.click()
    assert page.locator("#numbers details table").first.is_visible()

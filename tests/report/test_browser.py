"""The report in a real browser, opened from disk."""

import pytest

from tests.report.papers import CLAIMS
from tests.report.probes import (
    BASELINES,
    CLIPPED,
    CONTRAST,
    IN_VIEW,
    LOST,
    OUT_OF_FRAME,
    STUCK,
    UNREACHABLE,
)
from theodolite.report import write_report

pytestmark = pytest.mark.browser

COUNTS = {
    "all": len(CLAIMS),
    "erratum": sum(one["kind"] == "erratum" for one in CLAIMS),
    "beyond": sum(one["kind"] == "beyond" for one in CLAIMS),
    **{
        verdict: sum(one["verdict"] == verdict for one in CLAIMS)
        for verdict in ("HOLDS", "FAILS", "UNDECIDED")
    },
}


@pytest.fixture(scope="module")
def address(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page with spaces")
    return write_report(root, folder / "report.html").as_uri()


def shown(page):
    return page.locator("article.claim:visible").count()


def test_every_verdict_is_there_and_visible(visit):
    page = visit()
    assert shown(page) == len(CLAIMS)
    for claim in CLAIMS:
        article = page.locator(f"article[id$='--{claim['claim']}']")
        badge = article.locator(".badge").first
        assert badge.inner_text().strip() == claim["verdict"]
        assert badge.locator("svg").bounding_box()["width"] > 8
        assert claim["place"] in article.locator("h4").inner_text()


def test_figures_are_drawn(visit):
    page = visit()
    drawings = page.locator("svg.drawing")
    assert drawings.count() == 2
    for each in drawings.all():
        box = each.bounding_box()
        assert box["width"] > 400
        assert box["height"] > 150
        # A glyph or marker whose reference is lost has no extent.
        assert each.evaluate(LOST) == 0


@pytest.mark.parametrize("width", [360, 1280])
def test_gauges_show_estimate_interval_and_region(visit, width):
    page = visit(width=width)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.locator("svg.gauge").count() > len(CLAIMS)
    assert page.evaluate(OUT_OF_FRAME) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for gauge in page.locator("svg.gauge").all():
        assert gauge.locator(".estimate").count() >= 1
        assert gauge.locator(".end").first.bounding_box()["height"] > 10


def test_formulas_sit_on_the_baseline_of_their_line(visit):
    lines = visit().evaluate(BASELINES)
    assert len(lines) >= 5
    assert [pair for pair in lines if abs(pair[0] - pair[1]) > 0.5] == []


def test_each_mark_leads_to_its_claim(visit):
    page = visit()
    marks = page.locator("a.mark")
    assert marks.count() == len(CLAIMS)
    for index in range(marks.count()):
        mark = marks.nth(index)
        assert mark.get_attribute("title")
        target = mark.get_attribute("href")
        mark.click()
        page.wait_for_function(IN_VIEW, arg=target[1:])
        bar = page.locator(".toolbar").bounding_box()
        top = page.locator(f"[id='{target[1:]}']").bounding_box()["y"]
        assert top >= bar["y"] + bar["height"] - 1, "hidden under the toolbar"


@pytest.mark.parametrize("want", COUNTS)
def test_the_filter_shows_what_it_says(visit, want):
    page = visit()
    button = page.locator(f"[data-filter='{want}']")
    button.click()
    assert shown(page) == COUNTS[want]
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator("[aria-pressed='true']").count() == 1
    assert page.locator("[role='status']").inner_text() == (
        f"{COUNTS[want]} of {len(CLAIMS)}"
    )
    page.emulate_media(media="print")
    assert shown(page) == len(CLAIMS), "paper shows everything"


def test_a_link_to_what_is_filtered_lifts_the_filter(visit):
    page = visit()
    page.locator("[data-filter='FAILS']").click()
    page.locator("a.mark.holds").first.click()
    assert shown(page) == len(CLAIMS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(visit, scheme):
    page = visit(color_scheme=scheme)
    ratios = page.evaluate(CONTRAST)
    assert len(ratios) > 100
    assert [one for one in ratios if one[0] < 4.5] == []


def test_dark_and_light_differ_and_the_button_switches(visit):
    def background(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = visit(color_scheme="light"), visit(color_scheme="dark")
    assert background(light) != background(dark)
    wanted = background(dark)
    light.locator(".theme").click()
    assert background(light) == wanted
    light.reload()
    assert background(light) == wanted, "remembered"
    light.emulate_media(media="print")
    assert background(light) == "rgb(255, 255, 255)"


def test_the_page_works_where_storage_is_denied(browser, address):
    context = browser.new_context(color_scheme="light")
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', "
        "{get() { throw new DOMException('denied', 'SecurityError'); }})"
    )
    page.goto(address)
    page.locator(".theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.locator("[data-filter='FAILS']").click()
    assert shown(page) == COUNTS["FAILS"]
    context.close()
    assert errors == []


@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_no_sideways_scrolling(visit, width):
    page = visit(width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Whatever is wider scrolls inside a box of its own that the keyboard reaches.
    page.evaluate("document.documentElement.scrollLeft = 100")
    assert page.evaluate("document.documentElement.scrollLeft") == 0
    assert page.evaluate(UNREACHABLE) == []


def test_print_shows_everything(visit):
    page = visit()
    page.emulate_media(media="print")
    assert shown(page) == len(CLAIMS)
    assert not page.locator(".toolbar").is_visible()
    assert not page.locator(".command button").first.is_visible()
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(STUCK) == []
    assert len(page.pdf(format="A4")) > 20_000


def test_without_javascript_all_is_readable(visit):
    page = visit(java_script_enabled=False)
    assert shown(page) == len(CLAIMS)
    assert not page.locator(".toolbar").is_visible(), "no buttons that do nothing"
    assert page.locator("svg.drawing:visible").count() == 2
    page.locator("a.mark").last.click()
    assert "#" in page.url


def test_the_keyboard_reaches_the_results(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_command_can_be_copied(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    # The button says so for a moment only, which a busy machine may miss.
    page.evaluate(
        """() => {
          const button = document.querySelector('.command button');
          window.said = [];
          new MutationObserver(() => window.said.push(button.textContent)).observe(
            button, {childList: true, characterData: true, subtree: true});
        }"""
    )
    page.locator(".command button").first.click()
    page.wait_for_function(
        "window.said.some((text) => ['Copied', 'Selected'].includes(text))"
    )
    if page.evaluate("window.said.includes('Copied')"):
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("theodolite run ")

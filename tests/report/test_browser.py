"""The report in a real browser, opened from disk."""

import re

import pytest

from tests.pages.conftest import new_page
from tests.pages.probes import (
    CLIPPED,
    CONTRAST,
    HEIGHTS,
    IN_VIEW,
    LOST,
    OUT_OF_FRAME,
    PAINTED,
    STUCK,
    UNNAMED,
    UNREACHABLE,
)
from tests.report.papers import CLAIMS, STUDIES
from theodolite.pages import GaugeNumber, SharedSvg, draw_gauge
from theodolite.report import write_report

pytestmark = pytest.mark.browser

WANTED = [
    ("kind", "erratum"),
    ("kind", "beyond"),
    ("verdict", "HOLDS"),
    ("verdict", "FAILS"),
    ("verdict", "UNDECIDED"),
    ("rests", "committed"),
]
FIELDS = {"kind": "kind", "verdict": "verdict", "rests": "rests_on"}


@pytest.fixture(scope="module")
def address(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page with spaces")
    front = write_report(root, folder / "report.html")
    return front.with_name("report-li2016demystifying.html").as_uri()


def shown(page):
    return page.locator("article.claim:visible").count()


def choose(page, name, value):
    page.locator(f"[data-filter='{name}']").select_option(value)


def wait_until(page, condition, arg=None):
    """Wait for a condition: the page's policy forbids the polling of Playwright."""
    for _ in range(3000):
        if page.evaluate(condition, arg):
            return
        page.wait_for_timeout(20)
    pytest.fail(f"after a minute this does not hold: {condition}")


def find(page, words):
    page.locator("#find").fill(words)
    wait_until(
        page,
        "words => document.documentElement.classList.contains('narrowed') === !!words",
        arg=words,
    )


def count(page):
    return page.locator(".toolbar [role='status']").inner_text()


def test_every_verdict_is_there_and_visible(visit):
    page = visit()
    assert shown(page) == len(CLAIMS)
    for claim in CLAIMS:
        article = page.locator(f"article[id$='--{claim['claim']}']")
        badge = article.locator(".badge").first
        assert badge.inner_text().strip() == claim["verdict"]
        assert badge.locator("svg").bounding_box()["width"] > 8
        assert claim["place"] in article.locator(".place").inner_text()
        # The deciding number is seen, what else there is stays folded.
        assert article.locator(".decider svg.strip").first.is_visible()
        assert not article.locator(".body").is_visible()
    assert page.evaluate(UNNAMED) == []
    assert max(page.evaluate(HEIGHTS)) < 1000, "a study is a screen"


def test_figures_are_drawn(visit):
    page = visit()
    drawings = page.locator("svg.drawing")
    assert drawings.count() == 2
    for fold in page.locator(".more-figures > summary").all():
        fold.click()
    for each in drawings.all():
        box = each.bounding_box()
        assert box["width"] > 400
        assert box["height"] > 150
        # A glyph or marker whose reference is lost has no extent.
        assert each.evaluate(LOST) == 0
    figure = page.locator(".plot").first
    before = figure.locator("svg.drawing").bounding_box()["width"]
    figure.locator(".enlarge").click()
    assert figure.locator("svg.drawing").bounding_box()["width"] > 1.2 * before
    assert figure.locator(".enlarge").get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("width", [360, 1280])
def test_gauges_show_estimate_interval_and_region(visit, width):
    page = visit(width=width)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.locator("svg.gauge").count() > len(CLAIMS)
    assert page.evaluate(OUT_OF_FRAME) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for gauge in page.locator("svg.gauge").all():
        assert gauge.locator(".dot").count() >= 1
        assert gauge.locator("use").first.bounding_box()["height"] > 10
    for strip in page.locator("svg.strip").all()[:4]:
        assert strip.locator("use").bounding_box()["height"] > 8, "the region is drawn"
        assert strip.locator(".dot").bounding_box() is not None


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_long_lines_of_gauges_shrink_to_the_page(visit, width):
    page = visit(width=width)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    near_zero = GaugeNumber(value=-2.15242e-15, low=-2.15243e-15, high=-2.15241e-15)
    plain = GaugeNumber(value=1.0, low=0.9, high=1.1)
    drawn = draw_gauge([("this run", near_zero), ("x", plain)], SharedSvg(), "long")
    frame = page.locator("svg.gauge:visible").first
    frame.evaluate("(e, drawn) => { e.outerHTML = drawn; }", str(drawn))
    assert page.evaluate(OUT_OF_FRAME) == []
    heights = page.locator("svg.gauge[aria-label='long'] text").evaluate_all(
        "all => all.slice(0, 2).map((e) => e.getBoundingClientRect().height)"
    )
    shrunk = heights[0] / heights[1]
    assert shrunk == pytest.approx(1) if width > 1000 else 0.6 < shrunk < 0.95


def test_formulas_are_set_by_the_browser(visit):
    page = visit()
    root = page.locator("math[alttext*='sqrt']:visible").first
    assert root.bounding_box()["height"] > 12
    # Set as mathematics: the index stands lower than what it belongs to.
    index, whole = page.evaluate(
        """() => {
          const [base, index] = document.querySelector(
            "main summary msub, main p msub").children;
          return [index, base].map((e) => e.getBoundingClientRect().bottom);
        }"""
    )
    assert index > whole


def test_each_mark_leads_to_its_claim(visit):
    page = visit()
    marks = page.locator("a.mark")
    assert marks.count() == len(CLAIMS)
    for index in range(marks.count()):
        mark = marks.nth(index)
        assert mark.get_attribute("title")
        target = mark.get_attribute("href")
        mark.click()
        # Unfolded and scrolled to as the address changes, which a click does not await.
        unfolded = "id => document.getElementById(id).querySelector('details').open"
        wait_until(page, unfolded, arg=target[1:])
        wait_until(page, IN_VIEW, arg=target[1:])
        claim = page.locator(f"[id='{target[1:]}']")
        bar = page.locator(".toolbar").bounding_box()
        assert claim.bounding_box()["y"] >= bar["y"] + bar["height"] - 1
        assert claim.locator(".body").is_visible(), "unfolded for who came for it"


def test_the_contents_follow(visit):
    page = visit(height=600)
    current = page.locator(".contents [aria-current]")
    assert current.inner_text() == "Demystifying ResNet"
    for study in STUDIES:
        name = f"r-{study['paper']['name']}--{study['study']['name']}"
        page.evaluate(
            "id => document.getElementById(id).scrollIntoView({block: 'start'})", name
        )
        wait_until(
            page,
            """id => document.querySelector(".contents [aria-current]")
                 .getAttribute("href") === "#" + id""",
            arg=name,
        )
        assert current.count() == 1
        assert current.is_visible()
        nav = page.locator(".contents").bounding_box()
        assert nav["y"] >= 0
        assert current.bounding_box()["y"] <= nav["y"] + nav["height"]
    page.locator(".contents a").first.click()
    wait_until(page, "scrollY < 400")


def test_the_contents_open_over_a_phone(visit):
    page = visit(width=390, height=700)
    nav, button = page.locator(".contents"), page.locator(".contents-button")
    assert not nav.is_visible()
    button.click()
    assert nav.is_visible()
    page.keyboard.press("Escape")
    assert not nav.is_visible()
    button.click()
    nav.locator("ol a:visible").last.click()
    assert not nav.is_visible()
    wait_until(page, "location.hash.startsWith('#r-')")
    page.locator(".filters-button").click()
    choose(page, "verdict", "FAILS")
    assert shown(page) == sum(one["verdict"] == "FAILS" for one in CLAIMS)


def test_the_filter_covers_everything(visit):
    page = visit()
    for name, value in WANTED:
        wanted = [one for one in CLAIMS if one[FIELDS[name]] == value]
        choose(page, name, value)
        assert shown(page) == len(wanted), value
        assert count(page) == f"{len(wanted)} of {len(CLAIMS)}"
        assert page.locator("a.mark:visible").count() == len(wanted)
        # Studies, the rows about them and the contents go with their claims.
        kept = {one.get_attribute("id").rpartition("--")[0] for one in
                page.locator("article.claim:visible").all()}  # fmt: skip
        assert page.locator(".study:visible").count() == len(kept)
        assert page.locator(".matrix tbody tr:visible").count() == len(kept)
        links = page.locator(".contents li:not(.filtered) > a").all()
        entries = {one.get_attribute("href")[1:] for one in links}
        studies = {one for one in entries if one.count("--") == 1}
        assert studies == kept
        assert page.locator(".plot:visible").count() == 0
        assert not page.locator(".tally").is_visible(), "it sums up all"
        for chapter in page.locator(".chapter:visible").all():
            assert chapter.locator("li:visible").count() > 0
        choose(page, name, "")
    assert shown(page) == len(CLAIMS)
    choose(page, "verdict", "UNDECIDED")
    choose(page, "rests", "committed")
    assert shown(page) == 0
    page.locator(".nothing button").click()
    assert shown(page) == len(CLAIMS)
    choose(page, "verdict", "FAILS")
    page.emulate_media(media="print")
    assert shown(page) == len(CLAIMS), "paper shows everything"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("fewer degenerate EIGENVALUES", {"fewer_degenerate"}),
        ("appendix A", {"transposed_block"}),
        ("p-value", {"two_beats_three"}),
        ("gap of the closed form", {"two_shortcut_constant"}),
        (r"\otimes", {"transposed_block"}),
        ("no such thing", set()),
    ],
    ids=["statement", "place", "number", "piece", "formula", "nothing"],
)
def test_the_search_finds(opened, words, names):
    page = opened
    find(page, words)
    shown_names = {
        one.get_attribute("id").rpartition("--")[2]
        for one in page.locator("article.claim:visible").all()
    }
    assert shown_names >= names
    if words != r"\otimes":  # the study that has it in its text is found as well
        assert shown_names == names
    if names and words.replace(" ", "").replace("-", "").isalpha():
        # What stands in a folded part is unfolded, and folded again afterwards.
        assert page.get_by_text(words).first.is_visible()
    find(page, "")
    assert shown(page) == len(CLAIMS)
    assert page.locator(".body:visible").count() == 0


@pytest.fixture(scope="module")
def opened(browser, address):
    page = new_page(browser)
    page.goto(address)
    return page


def test_the_search_finds_studies_by_their_words(opened):
    find(opened, "whitened MNIST")
    assert opened.locator(".study:visible").count() == 1
    assert shown(opened) == len(STUDIES[0]["claims"])
    opened.locator("#find").press("Escape")
    assert shown(opened) == len(CLAIMS)


def test_a_link_to_what_is_hidden_shows_all(visit):
    page = visit()
    choose(page, "verdict", "FAILS")
    page.evaluate("document.querySelector('.skip-link').href = document.querySelector("
                  "'article.claim.holds').id.replace(/^/, '#')")  # fmt: skip
    page.locator(".skip-link").focus()
    page.keyboard.press("Enter")
    wait_until(page, "!document.querySelector('article.claim.filtered')")
    assert shown(page) == len(CLAIMS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(visit, scheme):
    page = visit(color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    ratios = page.evaluate(CONTRAST)
    assert len(ratios) > 100
    assert [one for one in ratios if one[0] < 4.5] == []


def test_dark_and_light_differ_and_the_button_switches(visit):
    def background(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = visit(color_scheme="light"), visit(color_scheme="dark")
    unfold = "document.querySelectorAll('.more-figures').forEach(d => d.open = true)"
    for page in (light, dark):
        page.evaluate(unfold)
    assert background(light) != background(dark)
    wanted = background(dark)
    paints = [set(page.evaluate(PAINTED)) for page in (light, dark)]
    assert {"rgb(255, 255, 255)", "rgb(43, 43, 43)"} <= paints[0]
    assert not {"rgb(255, 255, 255)", "rgb(43, 43, 43)"} & paints[1]
    assert "rgb(27, 31, 35)" in paints[1], "the figure's paper is the page's card"
    light.locator(".theme").click()
    assert background(light) == wanted
    assert set(light.evaluate(PAINTED)) == paints[1], "figures follow the button"
    light.reload()
    light.evaluate(unfold)
    assert background(light) == wanted, "remembered"
    light.emulate_media(media="print")
    assert background(light) == "rgb(255, 255, 255)"
    assert "rgb(255, 255, 255)" in light.evaluate(PAINTED)


def test_the_page_works_where_storage_is_denied(browser, address):
    page = new_page(browser, color_scheme="light")
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', "
        "{get() { throw new DOMException('denied', 'SecurityError'); }})"
    )
    page.goto(address)
    page.locator(".theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    choose(page, "verdict", "FAILS")
    assert shown(page) == sum(one["verdict"] == "FAILS" for one in CLAIMS)
    page.context.close()
    assert errors == []


@pytest.mark.parametrize("width", [320, 360, 390, 768, 1280, 1400])
def test_no_sideways_scrolling(visit, width):
    page = visit(width=width)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Whatever is wider scrolls inside a box of its own that the keyboard reaches.
    page.evaluate("document.documentElement.scrollLeft = 100")
    assert page.evaluate("document.documentElement.scrollLeft") == 0
    assert page.evaluate(UNREACHABLE) == []
    for drawing in page.locator("svg.drawing").all():
        box = drawing.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width, "figures fit"


def test_the_key_of_verdicts_stands_close_on_a_phone(visit):
    page = visit(width=390)
    page.get_by_text("What the words and drawings mean").click()
    words = page.locator(".key dt")
    heights = words.evaluate_all("all => all.map(one => one.offsetHeight)")
    assert len(heights) == 6
    assert max(heights) < 40


def test_print_shows_every_claim_on_a_page_a_study_or_less(visit):
    page = visit()
    printed = page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) <= len(STUDIES) + 1
    page.emulate_media(media="print")
    assert shown(page) == len(CLAIMS)
    assert not page.locator(".toolbar").is_visible()
    assert not page.locator(".enlarge").first.is_visible()
    assert page.locator("svg.strip:visible").count() >= len(CLAIMS)
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(STUCK) == []


def test_without_javascript_all_is_readable(visit):
    page = visit(java_script_enabled=False)
    assert shown(page) == len(CLAIMS)
    assert not page.locator(".toolbar").is_visible(), "no buttons that do nothing"
    for fold in page.locator(".more-figures > summary").all():
        fold.click()
    assert page.locator("svg.drawing:visible").count() == 2
    assert page.locator(".contents a:visible").count() > 1
    page.locator("a.mark").last.click()
    page.wait_for_url(re.compile("#"))
    claim = page.locator("article.claim").first
    claim.locator("summary").first.click()
    assert claim.locator(".body").is_visible()


def test_the_keyboard_reaches_the_results(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-link"
    page.keyboard.press("Enter")
    wait_until(page, "document.activeElement.id === 'main'")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    claim = page.locator("article.claim").first
    claim.locator("summary").first.focus()
    page.keyboard.press("Enter")
    claim.locator(".body").wait_for(state="visible")


def test_the_command_can_be_copied(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    page.locator(".part.run > summary").first.click()
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
    wait_until(
        page, "window.said.some((text) => ['Copied', 'Selected'].includes(text))"
    )
    if page.evaluate("window.said.includes('Copied')"):
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("theodolite run ")


@pytest.mark.parametrize("width", [390, 768, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_front_page_leads_to_a_paper_and_back(browser, address, width, scheme):
    size = {"width": width, "height": 900}
    page = new_page(browser, viewport=size, color_scheme=scheme)
    complaints, requests = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: requests.append(request.url))
    front = address.replace("-li2016demystifying", "")
    page.goto(front)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(UNREACHABLE) == []
    assert [one for one in page.evaluate(CONTRAST) if one[0] < 4.5] == []
    page.get_by_role("link", name="Demystifying ResNet").click()
    page.wait_for_url(address)
    assert shown(page) == len(CLAIMS)
    page.get_by_role("link", name="All papers").first.click()
    page.wait_for_url(front)
    page.context.close()
    assert complaints == []
    assert requests == [front, address, front]


@pytest.mark.parametrize("width", [390, 768, 1400])
def test_labels_are_whole(visit, width):
    page = visit(width=width)
    cut = "all => all.filter((e) => e.scrollWidth > e.clientWidth + 1).length"
    for words in (".what", ".place", ".contents a", ".claim h3"):
        assert page.locator(words).count()
        page.locator(words).evaluate_all(
            "all => all.forEach((e) => e.append(' and more words of it'.repeat(9)))"
        )
        assert page.locator(f"{words}:visible").evaluate_all(cut) == 0, words


def test_departures_and_readings_are_seen_before_anything_is_unfolded(visit):
    page = visit()
    for study in STUDIES:
        for line in study["study"]["departures"]:
            assert page.get_by_text(line.partition("$")[0].strip()).is_visible()

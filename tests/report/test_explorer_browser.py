"""Sliders in a real browser, and the page's own arithmetic against Python's."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.pages.conftest import new_page
from tests.pages.probes import CONTRAST, OUT_OF_CHART, UNREACHABLE
from tests.report.ensembles import MEANS, NETWORKS, exhibit, measured
from tests.report.minima_table import DIMENSIONS, column, glass
from tests.report.test_explorer import page_of
from theodolite import theory

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page_of(measured([exhibit(), MEANS])), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def opened(browser, address):
    """The page, opened once, and what it complained of or asked for."""
    page, messages = new_page(browser, reduced_motion="reduce"), []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(address)
    page.on("request", lambda request: messages.append(request.url))
    yield page, messages
    page.context.close()


@pytest.fixture
def page(opened):
    """The page at its first values; fail at the end if it complained or asked."""
    page, messages = opened
    page.get_by_label("Start again").click()
    yield page
    assert messages == []


@pytest.fixture
def ask(opened):
    """Ask the open page for a value of its own arithmetic."""
    page, _ = opened
    return lambda call: page.evaluate(f"() => theodolite.paths.{call}")


@pytest.mark.parametrize(
    ("depth", "beta"), [(1, 0.5), (2, 8.0), (100, 0.1), (1000, 0.5), (2000, 0.001)]
)
def test_weights(ask, depth, beta):
    value = np.array(ask(f"logWeights({depth}, {beta})"))
    wanted = theory.log_path_weights(depth, beta)
    np.testing.assert_allclose(value, wanted, rtol=1e-13, atol=1e-11)
    value = ask(f"moments(theodolite.paths.residual({depth}, {beta}))")
    moments = theory.path_length_moments(depth, beta)
    np.testing.assert_allclose(value["mean"], moments.mean, rtol=1e-11)
    np.testing.assert_allclose(value["variance"], moments.variance, rtol=1e-9)


@pytest.mark.parametrize(
    ("depth", "beta", "wanted"),
    [
        (100, 0.1, [10]),
        (100, 0.5, [34]),
        (100, 2.0, [67]),
        (9, 0.5, [3, 4]),
        (10, 1.0, [5, 6]),
        (10, 9.0, [9, 10]),
        (10, 9.01, [10]),
        (5, 0.001, [1]),
        (1, 1.0, [1]),
    ],
)
def test_peaks_and_their_ties(ask, depth, beta, wanted):
    assert ask(f"peaks({depth}, {beta})") == wanted
    assert list(theory.path_peak(depth, beta)) == wanted


def test_a_scale_as_it_is_written_ties(ask):
    # 0.1 as a float is not 1/10; on the page it is what one reads.
    assert ask("peaks(11, 0.1)") == list(theory.path_peak(11, Fraction(1, 10)))


def test_the_scale_of_a_mean_is_found_again(ask):
    for beta in (0.02, 0.5, 7.0):
        mean = f"theodolite.paths.moments(theodolite.paths.residual(80, {beta})).mean"
        np.testing.assert_allclose(ask(f"scaleForMean(80, {mean})"), beta, rtol=1e-10)
    assert ask("scaleForMean(80, 1)") is None
    assert ask("scaleForMean(80, 80)") is None


def landscape(depth, beta):
    """$v'$, $v''$, their ratio and the exponent of a network without its degree 1."""
    shares = np.exp(2 * theory.log_path_weights(depth, beta))[1:]
    mixture = dict(enumerate(shares / shares.sum(), start=2))
    moments = theory.mixture_moments(mixture)
    exponent = theory.critical_exponent(mixture)
    return moments.first, moments.second, moments.ratio, exponent


@pytest.mark.parametrize(("depth", "beta"), [(2, 0.5), (10, 0.01), (100, 2.0)])
def test_exponents(ask, depth, beta):
    value = ask(f"landscape(theodolite.paths.residual({depth}, {beta}))")
    names = ("slope", "curvature", "x", "exponent")
    for name, wanted in zip(names, landscape(depth, beta), strict=True):
        np.testing.assert_allclose(value[name], wanted, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("mixture", "wanted"),
    [
        ("plain(3)", 0.013240256947),
        ("plain(10)", 0.298612288668),
        ("plain(100)", 1.317559925067),
        ("twoDegrees(2, 3, 0.5)", 0.004232583854),
        # Degree 1 is dropped, whatever its share.
        ("twoDegrees(1, 10, 0.01)", 0.298612288668),
        ("residual(100, 0.1)", 0.3061098415),
        ("residual(100, 10)", 1.2732251083),
    ],
)
def test_exponents_as_tabulated(ask, mixture, wanted):
    value = ask(f"landscape(theodolite.paths.{mixture})")
    np.testing.assert_allclose(value["exponent"], wanted, atol=2e-10)


def test_there_is_no_exponent_without_degree_two(ask):
    assert ask("landscape(theodolite.paths.residual(1, 0.5))") is None
    assert ask("landscape(theodolite.paths.plain(1))") is None


@pytest.mark.parametrize("x", [1.0, 2.0, 3.0, 99.0])
def test_counts_on_circle_and_sphere(ask, x):
    circle, sphere = 2 * (3 * x + 1) ** 0.5, 2 + 8 * x**1.5 / (3 * x + 1) ** 0.5
    for size, wanted in ((2, circle), (3, sphere)):
        value = math.exp(ask(f"logCriticalPoints({size}, {x})"))
        np.testing.assert_allclose(value, wanted, rtol=1e-12)
    assert ask(f"circle({x}).all") == pytest.approx(circle, rel=1e-14)
    assert ask(f"sphere({x}).all") == pytest.approx(sphere, rel=1e-14)
    # Minima, maxima and saddles: as many of the first two, two more than of the last.
    minima = ask(f"sphere({x}).minima")
    assert 2 * minima - (sphere - 2 * minima) == pytest.approx(2, rel=1e-12)


def test_counts_of_degree_two_are_twice_the_dimension(ask):
    for size in (4, 5, 30, 31, 200):
        value = math.exp(ask(f"logCriticalPoints({size}, 1)"))
        np.testing.assert_allclose(value, 2 * size, rtol=1e-11)


@pytest.mark.parametrize("size", [5, 40, 200])
@pytest.mark.parametrize("x", [1.1, 4.0, 1500.0])
def test_counts_meet_theory(ask, size, x):
    everything = theory.mean_critical_points(glass(size, x))
    value = ask(f"logCriticalPoints({size}, {x})")
    np.testing.assert_allclose(value, everything.log, rtol=1e-10)
    # The rival: the exponent of a fixed index taken for that of all.
    assert abs(size * ask(f"exponent({x})") - value) > 1


@pytest.mark.parametrize("size", [2, 3, 4, 40])
@pytest.mark.parametrize("x", [1.0, 1.1, 4.0, 1999.0])
def test_minima_meet_theory(ask, size, x):
    minima = theory.mean_critical_points(glass(size, x), index=0)
    value = ask(f"logMinima({size}, {x})")
    np.testing.assert_allclose(value, minima.log, atol=3e-6)
    assert abs(size * ask(f"exponent({x})") - value) > 0.1


def test_the_table_of_minima_is_that_of_theory(ask):
    assert ask("dimensions()") == [2, 3, *DIMENSIONS]
    for size in (5, 40):
        kept = ask(f"minimaTable.values[{size}]")
        np.testing.assert_allclose(kept, column(size), rtol=1e-8)


def reading(page, name):
    return page.locator(f"[data-value='{name}']").first.inner_text()


def drawn(page, chart):
    return page.locator(f"[data-chart='{chart}']").inner_html()


def test_it_opens_with_depth_100(page):
    slope, curvature, x, exponent = landscape(100, 0.5)
    assert reading(page, "peak-here") == "34"
    assert reading(page, "mean-here") == "33.92"
    assert reading(page, "half-here") == "50"
    assert reading(page, "x-here") == f"{x:.4g}"
    assert reading(page, "theta-here") == f"{exponent:.4g}"
    assert reading(page, "theta-plain") == "1.318"
    assert reading(page, "all-3-here") == f"{2 + 8 * x**1.5 / (3 * x + 1) ** 0.5:.4g}"
    assert reading(page, "slope-here") == f"{slope:.4g}"
    assert reading(page, "curvature-here") == f"{curvature:.4g}"
    assert page.locator("[data-chart='weights'] .bars rect").count() == 100


def test_sliders_move_what_is_shown(page):
    for name, changes, stays in (
        ("depth", ["half-here", "mean-here", "theta-plain", "told"], "size"),
        ("beta", ["mean-here", "theta-here", "all-2-here", "told"], "theta-plain"),
        ("size", ["all-here", "asymptotic-plain", "warning", "size"], "mean-here"),
    ):
        before = {one: reading(page, one) for one in [*changes, stays]}
        charts = {one: drawn(page, one) for one in ("weights", "exponents", "counts")}
        slider = page.locator(f"[data-slider='{name}']")
        spoken = slider.get_attribute("aria-valuetext")
        slider.focus()
        page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") != spoken
        assert [one for one in changes if reading(page, one) == before[one]] == []
        assert reading(page, stays) == before[stays]
        moved = {one for one, was in charts.items() if drawn(page, one) != was}
        assert moved == ({"counts"} if name == "size" else set(charts))
    assert reading(page, "said") == reading(page, "told"), "spoken once it is let go"


def test_numbers_can_be_typed_and_wrong_ones_are_refused(page):
    page.locator("[data-exact='depth']").fill("9")
    page.locator("[data-exact='beta']").fill("0.5")
    assert reading(page, "peak-here") == "3 and 4"
    for name in ("depth", "beta"):
        field = page.locator(f"[data-exact='{name}']")
        kept = field.input_value()
        for wrong in ("", "0", "-3", "1e9"):
            field.fill(wrong)
            assert reading(page, "peak-here") == "3 and 4"
        field.blur()
        assert field.input_value() == kept
    page.locator("[data-exact='depth']").fill("1")
    assert reading(page, "theta-here") == "\u2014"
    assert "need a degree of 2 or more" in reading(page, "warning")


def test_mixtures_can_be_chosen(page):
    page.get_by_label("Plain network").check()
    assert reading(page, "theta-here") == reading(page, "theta-plain") == "1.318"
    assert not page.locator("[data-slider='beta']").is_visible()
    page.get_by_label("Two degrees").check()
    assert page.locator("[data-slider='share']").is_visible()
    assert reading(page, "theta-here") == "0.004233"
    assert reading(page, "slope-here") == "2.5"
    assert reading(page, "theta-plain") == "0.01324", "of the larger degree"
    page.locator("[data-slider='share']").fill("100")
    assert reading(page, "theta-here") == "0.01324"
    page.locator("[data-slider='share']").fill("36")
    heights = "all => all.map((one) => Number(one.getAttribute('height')))"
    bars = page.locator("[data-chart='weights'] .bars rect")
    first, second = bars.evaluate_all(heights)
    assert second / first == pytest.approx(0.36 / 0.64, rel=1e-3)
    page.get_by_label("weights, ε").check()
    first, second = bars.evaluate_all(heights)
    assert second / first == pytest.approx(0.6 / 0.8, rel=1e-3)


def test_measured_ensembles_stand_on_the_same_axes(page):
    dots = page.locator("[data-chart='weights'] .measured circle")
    assert dots.count() == 0
    assert page.locator("[data-chart='depths'] .others circle").count() == 4
    select = page.locator("[data-select]")
    assert select.locator("option").all_inner_texts() == [
        "none",
        *(f"{name}, output" for name in NETWORKS),
        "deep, gradient (committed run)",
    ]
    select.select_option("0")
    assert dots.count() == 30
    assert page.locator("[data-exact='depth']").input_value() == "30"
    assert reading(page, "beta-measured") == "0.7, of equal mean"
    assert reading(page, "mean-measured") == reading(page, "mean-here")
    assert reading(page, "theta-measured") == reading(page, "theta-here")
    # On bars that theory drew with the same scale lie the dots.
    tops = page.locator("[data-chart='weights'] .bars rect").evaluate_all(
        "all => all.map((one) => Number(one.getAttribute('y')))"
    )
    seen = dots.evaluate_all("all => all.map((o) => Number(o.getAttribute('cy')))")
    np.testing.assert_allclose(seen, tops, atol=0.3)


def test_a_network_is_followed_through_its_training(page):
    page.locator("[data-select]").select_option("1")
    assert reading(page, "beta-measured") == "0.2, fitted"
    early = float(reading(page, "mean-measured"))
    page.locator("[data-slider='step']").focus()
    page.keyboard.press("ArrowRight")
    assert reading(page, "beta-measured") == "1.5, fitted"
    assert page.locator("[data-exact='beta']").input_value() == "1.5"
    assert "after 500 updates" in reading(page, "told")
    assert float(reading(page, "mean-measured")) > early + 3
    page.locator("[data-select]").select_option("")
    assert reading(page, "mean-measured") == "\u2014"


STRANGE = [None, True, -1, 2.5, 1e308, "", "x", "constructor", "__proto__"]


def test_strange_rows_are_passed_over(ask):
    share = {"quantity": "share", "network": "net", "part": "output", "length": 0,
             "blocks": 1, "step": 3, "value": 0.25, "error": 0.1}  # fmt: skip
    rows = [share, {**share, "length": 1, "value": 0.75}]
    rows += [{**share, "step": 4, name: one} for name in share for one in STRANGE]
    lines = [list(row.values()) for row in rows]
    table = {"study": "s", "source": "own", "columns": list(share), "lines": lines}
    series = ask(f"seriesOf({json.dumps({'path_ensembles': [table]})})")
    (whole,) = [
        one for one in series if (one["network"], one["part"]) == ("net", "output")
    ]
    (good,) = [one for one in whole["ensembles"] if one["step"] == 3]
    assert good["mixture"]["shares"] == [0.25, 0.75]
    for one in series:
        for ensemble in one["ensembles"]:
            assert sum(ensemble["mixture"]["shares"]) == pytest.approx(1)
            assert 0 < ensemble["moments"]["mean"] < 5001
    assert ask("seriesOf({})") == []


def test_a_mean_alone_is_a_line(page):
    page.locator("[data-select]").select_option("2")
    assert page.locator("[data-exact='depth']").input_value() == "54"
    assert reading(page, "mean-measured") == "21", "the first layer counts"
    assert reading(page, "spread-measured") == "3"
    assert reading(page, "beta-measured") == "0.62, fitted"
    assert reading(page, "theta-measured") == "\u2014"
    assert page.locator("[data-chart='weights'] .upright.measured").count() == 1
    assert page.locator("[data-chart='weights'] .measured circle").count() == 0


def test_it_can_be_read_on_a_phone_and_on_paper(visit):
    page = visit(width=320)
    page.locator("[data-select]").select_option("1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.evaluate(UNREACHABLE) == []
    assert page.evaluate(OUT_OF_CHART) == []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ratios = page.evaluate(CONTRAST)
        assert len(ratios) > 100
        assert [one for one in ratios if one[0] < 4.5] == []
    page.emulate_media(media="print")
    assert not page.locator(".controls").is_visible()
    assert "Residual network of depth 10 at" in reading(page, "told")
    for chart in page.locator("[data-chart]").all():
        assert chart.bounding_box()["height"] > 100


def test_without_javascript_a_sentence_stands_there(visit):
    page = visit(java_script_enabled=False)
    assert not page.locator(".explorer-body").is_visible()
    sentence = page.locator(".explorer noscript p")
    assert sentence.is_visible()
    assert "needs JavaScript; nothing is loaded" in sentence.inner_text()


def test_without_rows_it_still_explores(browser, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(page_of(measured([])), encoding="utf-8")
    page = new_page(browser)
    page.goto(file.as_uri())
    assert not page.locator("[data-select]").is_visible()
    assert page.locator("[data-key='others']:visible").count() == 0
    command = "theodolite run littwin2016loss/measured_ensemble"
    assert page.get_by_text(command).first.is_visible()
    assert reading(page, "peak-here") == "34"
    page.context.close()


def test_it_starts_again_where_it_began(page):
    before = {name: reading(page, name) for name in ("told", "warning", "all-here")}
    page.get_by_label("Two degrees").check()
    page.locator("[data-slider='size']").fill("3")
    assert {name: reading(page, name) for name in before} != before
    page.get_by_label("Start again").click()
    assert {name: reading(page, name) for name in before} == before
    assert page.locator("[data-exact='depth']").input_value() == "100"

"""Where numbers lie on scales, and gauges drawn on them."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core import above, below, near
from theodolite.pages import (
    GaugeNumber,
    SharedSvg,
    draw_gauge,
    draw_strip,
    format_interval,
    gauge_scale,
)
from theodolite.pages.scales import scale_of


def number(value, low, high, region, look="holds"):
    return GaugeNumber(
        name="y", look=look, value=value, low=low, high=high, region=region
    )


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (number(1.2, 1.1, 1.3, above(0)), "linear"),
        (number(0.6, 0.0004, 1.2, above(0)), "linear"),
        (number(1.0001, 1.00005, 1.00015, near(1, 0.01)), "linear"),
        (number(1e9, 1e8, 1e10, below(2.0)), "log"),
        (number(3e-16, -1e-15, 2e-15, below(1e-10)), "symlog"),
        (number(0.2, 0.19, 0.21, near(0, 1e-5)), "symlog"),
        (number(0.0, 0.0, 0.0, near(0, 0)), "linear"),
        (number(None, None, None, above(0)), "linear"),
    ],
)
def test_the_axis_suits_the_numbers(one, kind):
    scale = gauge_scale([one])
    assert scale.kind == kind
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 6
    assert len({label for _, label in ticks}) == len(ticks)


numbers = st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-15)


@given(numbers, numbers, numbers, st.sampled_from(["above", "below", "near"]))
def test_order_is_kept_and_all_is_in_view(value, reach, end, kind):
    margin = abs(reach) or 1.0
    region = {"above": above, "below": below}.get(kind, lambda x: near(x, margin))(end)
    one = number(value, value - abs(reach), value + abs(reach), region)
    scale = gauge_scale([one])
    ends = [e for e in (region.low, region.high) if math.isfinite(e)]
    seen = sorted([one.low, one.value, one.high, *ends])
    places = [scale(one) for one in seen]
    assert places == sorted(places)
    assert places[0] > 1
    assert places[-1] < 99
    assert (scale(-math.inf), scale(math.inf)) == (0, 100)
    for tick, _ in scale.ticks():
        assert 0 <= scale(tick) <= 100


def test_decades_are_kept_apart():
    tiny = number(3e-16, -1e-15, 2e-15, below(1e-10))
    scale = gauge_scale([tiny])
    gap = scale(1e-10) - scale(2e-15)
    assert gap > 20, "a straight axis would put both in one place"


def test_a_gauge_draws_whose_number_it_is():
    own = number(1.0, 0.9, 1.1, above(0))
    open_ended = replace(own, low=None, look="undecided")
    drawn = draw_gauge([("this run", own), ("committed", open_ended)], SharedSvg(), "l")
    assert drawn.count('class="dot"') == 2
    assert 'class="strip holds"' in drawn
    assert "this run: 1 [0.9, 1.1]" in drawn
    assert "committed: 1 [−∞, 1.1]" in drawn
    # The bar without a lower end has one cap and reaches the edge.
    undecided = drawn.partition('class="strip undecided"')[2]
    assert undecided.count("v8") == 1
    assert 'd="M0 9H' in undecided
    assert drawn.count("v8") == 3


def test_a_strip_draws_the_same_in_few_letters():
    shared = SharedSvg()
    one = number(1.0, 0.9, 1.1, above(0))
    scale = gauge_scale([one])
    drawn = draw_strip(one, scale, shared)
    place, low, high = (f"{round(scale(x), 1):g}" for x in (1.0, 0.9, 1.1))
    assert f'd="M{place} 9h0"' in drawn
    assert f'd="M{low} 9H{high}M{low} 5v8M{high} 5v8"' in drawn
    draw_strip(replace(one, value=1.05), scale, shared)
    assert shared.shapes.count('class="region"') == 1, "the region stands there once"
    assert 'class="end open"' in shared.shapes
    unbounded = draw_strip(replace(one, low=None), scale, shared)
    assert f'd="M0 9H{high}M{high} 5v8"' in unbounded


def test_an_open_number_says_why():
    one = replace(number(None, None, None, above(0)), note="one network has no spread")
    assert format_interval(one) == "open, one network has no spread"
    assert 'class="dot"' not in draw_gauge([("this run", one)], SharedSvg(), "l")


@pytest.mark.parametrize("span", [1.5, 3.0, 20.0, 60.0, 1e3, 1e7, 1e11])
def test_a_logarithmic_axis_always_has_ticks_to_read_it_by(span):
    for start in (1e-5, 0.7, 3.0, 4200.0):
        ticks = scale_of([start, start * span], 0, 60, log=True).ticks(2)
        assert 2 <= len(ticks) <= 5


@pytest.mark.parametrize(
    ("values", "log"),
    [([1.0, 1.0], False), ([0.0], False), ([], True), ([1e-30, 1.0], True)],
)
def test_scales_hold_what_is_odd(values, log):
    scale = scale_of(values, 0, 100, log=log)
    assert scale.high > scale.low
    assert all(0 <= scale(value) <= 100 for value in [*values, 5.0, -3.0])
    assert len(scale.ticks(4)) <= 14

"""Where things lie on the axis of a drawn verdict."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core import Outcome, SavedJudgement, above, below, near
from theodolite.report.gauge import Strip, gauge, small_gauge, told
from theodolite.report.scale import scale_for
from theodolite.report.sheet import Sheet


def leaf(value, low, high, region, outcome=Outcome.HOLDS):
    return SavedJudgement(
        name="y", rule="number", outcome=outcome, p_holds=0.0, p_fails=1.0,
        value=value, low=low, high=high, n=3, region=region,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (leaf(1.2, 1.1, 1.3, above(0)), "linear"),
        (leaf(0.6, 0.0004, 1.2, above(0)), "linear"),
        (leaf(1.0001, 1.00005, 1.00015, near(1, 0.01)), "linear"),
        (leaf(1e9, 1e8, 1e10, below(2.0)), "log"),
        (leaf(3e-16, -1e-15, 2e-15, below(1e-10)), "symlog"),
        (leaf(0.2, 0.19, 0.21, near(0, 1e-5)), "symlog"),
        (leaf(0.0, 0.0, 0.0, near(0, 0)), "linear"),
        (leaf(None, None, None, above(0)), "linear"),
    ],
)
def test_the_axis_suits_the_numbers(one, kind):
    scale = scale_for([one])
    assert scale.kind == kind
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 6
    assert len({label for _, label in ticks}) == len(ticks)


numbers = st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-15)


@given(numbers, numbers, numbers, st.sampled_from(["above", "below", "near"]))
def test_order_is_kept_and_all_is_in_view(value, reach, end, kind):
    margin = abs(reach) or 1.0
    region = {"above": above, "below": below}.get(kind, lambda x: near(x, margin))(end)
    one = leaf(value, value - abs(reach), value + abs(reach), region)
    scale = scale_for([one])
    ends = [e for e in (region.low, region.high) if math.isfinite(e)]
    seen = sorted([one.low, one.value, one.high, *ends])
    places = [scale.place(number) for number in seen]
    assert places == sorted(places)
    assert places[0] > 1
    assert places[-1] < 99
    assert (scale.place(-math.inf), scale.place(math.inf)) == (0, 100)
    for tick, _ in scale.ticks():
        assert 0 <= scale.place(tick) <= 100


def test_decades_are_kept_apart():
    tiny = leaf(3e-16, -1e-15, 2e-15, below(1e-10))
    scale = scale_for([tiny])
    gap = scale.place(1e-10) - scale.place(2e-15)
    assert gap > 20, "a straight axis would put both in one place"


def test_a_gauge_draws_whose_number_it_is():
    own = leaf(1.0, 0.9, 1.1, above(0))
    open_ended = replace(own, low=None, outcome=Outcome.UNDECIDED)
    drawn = gauge([Strip("this run", own), Strip("committed", open_ended)])
    assert drawn.count("<circle") == 2
    assert 'class="bar holds"' in drawn
    assert 'class="bar undecided"' in drawn
    # The bar without a lower end has one cap and reaches the edge.
    assert drawn.count("cap") == 3
    assert 'class="bar undecided" x1="0%"' in drawn
    assert "committed: y 1 [−∞, 1.1], UNDECIDED" in drawn


def test_a_strip_draws_the_same_in_few_letters():
    sheet = Sheet()
    one = leaf(1.0, 0.9, 1.1, above(0))
    scale = scale_for([one])
    drawn = small_gauge(one, scale, sheet)
    place, low, high = (f"{round(scale.place(x), 1):g}" for x in (1.0, 0.9, 1.1))
    assert f'd="M{place} 9h0"' in drawn
    assert f'd="M{low} 9H{high}M{low} 5v8M{high} 5v8"' in drawn
    small_gauge(replace(one, value=1.05), scale, sheet)
    assert sheet.shapes.count('class="region"') == 1, "the region stands there once"
    assert 'class="end open"' in sheet.shapes
    unbounded = small_gauge(replace(one, low=None), scale, sheet)
    assert f'd="M0 9H{high}M{high} 5v8"' in unbounded


def test_an_open_number_says_why():
    one = replace(leaf(None, None, None, above(0)), note="one network has no spread")
    assert told(one) == "open, one network has no spread"
    assert "<circle" not in gauge([Strip("this run", one)])

"""Ticks that can be read, and series that leave a panel."""

import numpy as np
import pytest

from theodolite.figures import (
    count_axis,
    kind_style,
    legend,
    limit_y,
    line,
    log_axis,
    match_limits,
    new_figure,
    power_axis,
)

STYLE = kind_style("plain")


def labels(axis):
    low, high = sorted(axis.get_view_interval())
    ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [text.get_text() for at, text in ticks if low <= at <= high]


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        ((-3.2, 0.1), ["$10^{-3}$", "$10^{-2}$", "$10^{-1}$", "$10^{0}$"]),
        ((0, 20), ["$10^{0}$", "$10^{3}$", "$10^{6}$", "$10^{9}$", "$10^{12}$",
                   "$10^{15}$", "$10^{18}$"]),
        ((-1.05, 0.35), ["0.1", "0.2", "0.5", "1", "2"]),
        ((-0.1, 0.02), ["0.8", "0.9", "1"]),
        ((4.8, 6.1), [r"$10^{5}$", r"$2\times10^{5}$", r"$5\times10^{5}$",
                      r"$10^{6}$"]),
    ],
)  # fmt: skip
def test_ticks_are_powers_or_plain_numbers_as_room_allows(limits, wanted):
    _, (ax,) = new_figure()
    ax.set_ylim(limits)
    power_axis(ax, "y")
    assert labels(ax.yaxis) == wanted
    _, (ax,) = new_figure()
    log_axis(ax, "y")
    ax.set_ylim(10.0 ** np.array(limits))
    assert labels(ax.yaxis) == wanted


def test_an_axis_of_counts_begins_at_zero():
    _, (ax,) = new_figure()
    line(ax, [0, 1, 10, 3000], [1, 2, 3, 4], style=STYLE)
    count_axis(ax)
    assert labels(ax.xaxis) == ["0", "1", "10", "100", "1000"]
    assert ax.get_xlim()[0] == 0


def marks(ax):
    return [tuple(one.get_xydata()[0]) for one in ax.lines if one.get_marker() == "x"]


def test_a_series_that_leaves_its_panel_is_marked_where_it_does():
    _, (ax,) = new_figure()
    line(ax, [0, 1, 2, 3, 4], [1, 2, 1e9, 3, 1], style=STYLE, label="a")
    limit_y(ax, top=10.0, means="leaves the panel")
    assert ax.get_ylim()[1] == 10.0
    assert marks(ax) == [(1, 2), (3, 3)]
    names = [text.get_text() for text in legend(ax).get_texts()]
    assert names == ["a", "leaves the panel"]


def test_a_series_that_is_never_in_its_panel_is_marked_at_the_edge():
    _, (ax,) = new_figure()
    line(ax, [0, 1], [1e9, 1e10], style=STYLE)
    line(ax, [0, 1], [1, 2], style=STYLE)
    limit_y(ax, top=10.0, means="leaves the panel")
    assert marks(ax) == [(0, 10)]


def test_what_stays_in_its_panel_is_not_marked():
    _, (ax,) = new_figure()
    line(ax, [0, 1], [1, 2], style=STYLE)
    before = ax.get_ylim()
    limit_y(ax, bottom=-100.0, top=100.0, means="leaves the panel")
    assert marks(ax) == []
    assert ax.get_ylim() == before


def pair(first, second, *, titles=("a", "a"), log=False):
    figures = [new_figure() for _ in titles]
    for (_, (ax,)), title, top in zip(figures, titles, (first, second), strict=True):
        ax.set(title=title, xlabel="x", ylabel="y")
        if log:
            log_axis(ax, "y")
        ax.set(xlim=(1, 0), ylim=(1, top))
    match_limits(figures[0][0], figures[1][0])
    return [ax.get_ylim() for _, (ax,) in figures]


def test_twins_have_equal_axes():
    assert pair(2, 3) == [(1, 3), (1, 3)]
    assert pair(10, 1000, log=True) == [(1, 1000), (1, 1000)]


def test_axes_on_which_one_twin_could_not_be_read_stay_apart():
    assert pair(2, 100) == [(1, 2), (1, 100)]


def test_ranges_that_have_nothing_in_common_stay_apart():
    figures = [new_figure() for _ in range(2)]
    for (_, (ax,)), limits in zip(figures, [(0, 1), (1.1, 2)], strict=True):
        ax.set(xlim=limits)
    match_limits(figures[0][0], figures[1][0])
    assert [ax.get_xlim() for _, (ax,) in figures] == [(0, 1), (1.1, 2)]


def test_other_panels_stay_as_they_are():
    assert pair(2, 3, titles=("a", "b")) == [(1, 2), (1, 3)]


def test_an_axis_that_runs_backwards_still_does():
    figures = [new_figure() for _ in range(2)]
    for (_, (ax,)), end in zip(figures, (0.0, 0.3), strict=True):
        ax.set(xlim=(1, end))
    match_limits(figures[0][0], figures[1][0])
    assert [ax.get_xlim() for _, (ax,) in figures] == [(1, 0), (1, 0)]

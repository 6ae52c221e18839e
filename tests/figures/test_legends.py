"""Legends stand where nothing else does, and say what marks mean."""

from itertools import product

import pytest
from matplotlib.transforms import Bbox

from theodolite.figures import (
    TEXT_COLOUR,
    band,
    curve,
    kind_style,
    legend,
    line,
    new_figure,
    save,
    shared_legend,
)
from theodolite.figures.export import lay_out, marks_in, series_of

STYLE = kind_style("plain")


def names_of(one):
    return [text.get_text() for text in one.get_texts()]


def place(ax):
    return ax.get_legend().get_window_extent()


@pytest.mark.parametrize("corner", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_legend_stands_in_the_free_corner(corner):
    figure, (ax,) = new_figure()
    x, y = zip(
        *(at for at in product((0, 0.5, 1), repeat=2) if at != corner), strict=True
    )
    band(ax, x, y, style=STYLE, label="all places but one", line=False)
    legend(ax)
    lay_out(figure)
    room, box = ax.get_window_extent(), place(ax)
    across = ((box.x0 + box.x1) / 2 - room.x0) / room.width
    up = ((box.y0 + box.y1) / 2 - room.y0) / room.height
    assert not marks_in(ax, box)
    assert (across > 0.5, up > 0.5) == (bool(corner[0]), bool(corner[1]))


def full(ax):
    for level in range(40):
        line(
            ax, [0, 1], [level, level], style=STYLE, label="full" if not level else None
        )
    legend(ax)


def test_a_full_panel_has_its_legend_beside_it():
    figure, (ax,) = new_figure()
    full(ax)
    lay_out(figure)
    assert place(ax).x0 > ax.get_window_extent().x1
    assert place(ax).x1 <= figure.bbox.x1


def test_a_full_panel_that_has_a_neighbour_has_it_below():
    figure, (left, right) = new_figure(panels=(1, 2))
    full(left)
    left.set_xlabel("a label that stays free")
    line(right, [0, 1], [0, 1], style=STYLE, label="free")
    legend(right)
    lay_out(figure)
    assert place(left).y1 < left.xaxis.label.get_window_extent().y0
    assert place(left).y0 >= figure.bbox.y0
    assert not marks_in(right, place(right))


def test_a_shared_legend_has_each_name_once_and_each_meaning():
    figure, panels = new_figure(panels=(1, 2))
    for ax in panels:
        for kind in ("plain", "residual"):
            style = kind_style(kind)
            band(ax, [1, 2], [1, 2], style=style, label=kind, bound=[True, False],
                 means="hollow: a bound", ends="diverges")  # fmt: skip
            curve(ax, [1, 2], [1, 2], style=style, means="theory")
    one = shared_legend(figure, order=["residual"])
    names = ["residual", "plain", "hollow: a bound", "diverges", "theory"]
    assert names_of(one) == names
    lay_out(figure)
    assert all(one.get_window_extent().y1 < ax.get_window_extent().y0 for ax in panels)


def test_meanings_are_told_in_no_colour_of_a_series():
    _, (ax,) = new_figure()
    band(ax, [1, 2], [1, 2], style=STYLE, label="a", bound=[True, True], means="open")
    handles = legend(ax).legend_handles
    assert [handle.get_color() for handle in handles] == [STYLE.colour, "#737373"]
    assert handles[1].get_markerfacecolor() == "#FFFFFF"


def test_what_is_settled_is_the_same_in_every_format():
    """Layout is found once: saving again moves nothing."""
    figure, (ax,) = new_figure()
    full(ax)
    first = save(figure, "a", ["svg"])
    box = ax.get_position().bounds
    assert save(figure, "a", ["png", "svg"])["a.svg"] == first["a.svg"]
    assert ax.get_position().bounds == box


@pytest.mark.parametrize(
    ("letters", "side_by_side"), [(1, 4), (20, 3), (30, 2), (60, 1)]
)
def test_a_shared_legend_is_as_wide_as_its_figure_allows(letters, side_by_side):
    figure, (ax,) = new_figure()
    for name in "abcd":
        line(ax, [0, 1], [0, 1], style=STYLE, label=name * letters)
    one = shared_legend(figure)
    figure.draw_without_rendering()
    lefts = {round(text.get_window_extent().x0) for text in one.get_texts()}
    assert len(lefts) == side_by_side
    assert one.get_window_extent().x0 >= 0 or side_by_side == 1


def test_tiles_take_their_place():
    figure, (ax,) = new_figure()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    tiles = ax.pcolormesh([0.2, 0.8], [0.2, 0.8], [[1.0]])
    ax.scatter([], [])
    figure.draw_without_rendering()
    middle, corner = (
        Bbox(ax.transData.transform([(x, 0.5), (x + 0.05, 0.55)])) for x in (0.5, 0.9)
    )
    assert marks_in(ax, middle) == [tiles]
    assert marks_in(ax, corner) == []


def test_series_are_the_lines_that_show_data():
    _, (ax,) = new_figure()
    ax.plot([0, 1], [0, 1], visible=False)
    ax.plot([0, 1], [0, 1], marker="_", linestyle="none")
    ax.plot([], [])
    ax.plot([0, 1], [1, 1], "o", markevery=[])
    ax.plot([0, 1], [0, 0], color=TEXT_COLOUR)
    (shown,) = ax.plot([0, 1], [1, 0], color=STYLE.colour)
    ax.plot([0, 1], [1, 0], color=STYLE.colour, label="_decoration")
    assert list(series_of(ax)) == [shown]

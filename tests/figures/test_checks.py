"""Every rule for figures fires where it should, and nowhere else."""

from itertools import pairwise

import pytest

from tests.figures.checks import RULES, check, shared_colours
from theodolite.figures import (
    PALETTE,
    TEXT_COLOUR,
    band,
    curve,
    kind_style,
    legend,
    line,
    log_axis,
    new_figure,
    ordered_style,
    reference_line,
    shared_legend,
)
from theodolite.figures.marks import end_mark

PLAIN, RESIDUAL = kind_style("plain"), kind_style("residual")


def panel():
    figure, (ax,) = new_figure()
    return figure, ax


def good():
    """A figure with all that the house has, and nothing wrong."""
    figure, panels = new_figure(panels=(1, 2))
    for ax in panels:
        for rank, style in enumerate((PLAIN, RESIDUAL), start=1):
            bound = [False, False, True]
            band(ax, [1, 2, 3], [rank, 2 * rank, 5], [0.1] * 3, style=style,
                 label=f"kind {rank}", bound=bound, means="hollow: a bound",
                 kind="bars")  # fmt: skip
            curve(ax, [1, 3], [rank, 3 * rank], style=style, means="theory")
        reference_line(ax, 2.5)
        log_axis(ax, "x")
    shared_legend(figure)
    return figure


def over_data():
    figure, ax = panel()
    line(ax, [0, 1], [0, 1], style=PLAIN, label="a series with a rather long name")
    legend(ax).set_label("")  # which is not moved then
    ax.get_legend().set_loc("center")
    return figure


def without_a_legend():
    figure, ax = panel()
    for style in (PLAIN, RESIDUAL):
        line(ax, [0, 1], [0, style is PLAIN], style=style)
    return figure


def hollow_without_meaning():
    figure, ax = panel()
    band(ax, [0, 1, 2], [0, 1, 2], style=PLAIN, label="a", bound=[False, True, True])
    legend(ax)
    return figure


def hidden():
    """Laid out already, so that the rim of what is hidden is not drawn."""
    figure, ax = panel()
    for style in (PLAIN, RESIDUAL):
        band(ax, [0, 1, 2], [0, 1, 2], style=style, label=style.colour)
    legend(ax, outside=True)
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")
    return figure


def leaving():
    figure, ax = panel()
    line(ax, [0, 1, 2], [0, 1, 1e6], style=PLAIN, label="a")
    ax.set_ylim(0, 2)
    return figure


def of_no_kind():
    figure, ax = panel()
    ax.plot([0, 1], [0, 1], color="#12AB34")
    return figure


def of_eight_kinds():
    figure, ax = panel()
    for rank, colour in enumerate(PALETTE.values()):
        ax.plot([0, 1], [0, rank], color=colour, label=colour)
    legend(ax, outside=True)
    return figure


def logarithm():
    figure, ax = panel()
    line(ax, [0, 1], [0, 1], style=PLAIN)
    ax.set_ylabel(r"$\log_{10}\,$ loss")
    return figure


def tiny():
    figure, ax = panel()
    ax.set_title("small", fontsize=6.0)
    return figure


def wide():
    """Letters of nine points, on a page that shows half of the size."""
    figure, (ax,) = new_figure(14.0, 4.0)
    ax.set_title("shrunk")
    return figure


def crowded():
    figure, ax = panel()
    ax.set_xlim(0, 1)
    ax.set_xticks([0.5, 0.51], ["one label", "another label"])
    return figure


def off_the_page():
    figure, ax = panel()
    text = ax.text(1.0, 0.5, "far out, and farther still", transform=ax.transAxes)
    text.set_in_layout(False)
    return figure


FIRES = [
    ("legend over data", over_data),
    ("mark without a legend", without_a_legend),
    ("mark without a legend", hollow_without_meaning),
    ("hidden series", hidden),
    ("ends without a mark", leaving),
    ("colour of no kind", of_no_kind),
    ("too many colours", of_eight_kinds),
    ("logarithm in words", logarithm),
    ("small text", tiny),
    ("small text", wide),
    ("text over text", crowded),
    ("text off the page", off_the_page),
]


def test_a_good_figure_has_no_problems():
    assert check(good()) == []


@pytest.mark.parametrize(
    ("name", "draw"), FIRES, ids=lambda x: getattr(x, "__name__", x)
)
def test_a_rule_fires_alone(name, draw):
    assert {problem.rule for problem in check(draw())} == {name}


def test_every_rule_has_a_figure_that_breaks_it():
    assert {name for name, _ in FIRES} == set(RULES)


def test_what_mends_a_figure_silences_its_rule():
    figure = leaving()
    (ax,) = figure.axes
    end_mark(ax, 1, 1, style=PLAIN, means="leaves the panel")
    legend(ax)
    assert check(figure) == []


def test_series_under_others_are_made_to_show():
    figure, ax = panel()
    for style in (PLAIN, kind_style("orthogonal"), RESIDUAL):
        band(ax, [0, 1, 2], [0, 1, 2], style=style, label=style.colour)
    legend(ax)
    assert check(figure) == []
    for under, over in pairwise(ax.lines):
        assert under.get_markersize() > over.get_markersize() + 2
        assert under.get_linewidth() > over.get_linewidth() + 1


def test_a_colour_of_two_kinds_is_seen_across_figures():
    def of(style):
        figure, ax = panel()
        band(ax, [0, 1], [0, 1], style=style)
        return figure

    kinds = [kind_style(name) for name in ("orthogonal", "square_loss", "plain")]
    assert kinds[0].colour == kinds[1].colour
    assert shared_colours([of(kinds[0]), of(kinds[2])]) == []
    (problem,) = shared_colours([of(kinds[0]), of(kinds[1])])
    assert "D, s" in problem


def test_a_line_goes_with_the_markers_of_its_colour():
    figure, ax = panel()
    line(ax, [0, 1], [0, 0], style=PLAIN)
    band(ax, [0.5], [0], style=PLAIN)
    assert check(figure) == []


def test_hollow_markers_hide_nothing():
    """They are a line of their own, and the one that they were taken from is empty."""
    figure, ax = panel()
    band(ax, [0, 1, 2], [0, 1, 2], style=PLAIN, label="filled", line=False)
    band(ax, [0, 1, 2], [0, 1, 2], style=RESIDUAL, label="all hollow", line=False,
         bound=[True] * 3, means="hollow: a bound", marker_size=9.0)  # fmt: skip
    legend(ax)
    assert check(figure) == []
    assert ax.lines[0].get_markersize() == 5.0, "nothing lies over it"


def test_ramps_and_inks_are_no_strange_colours():
    figure, ax = panel()
    levels = list(range(10))
    for level in levels:
        band(ax, [0, 1], [level, level + 1], style=ordered_style(level, levels),
             label=str(level))  # fmt: skip
    ax.plot([0, 1], [5, 3], color=TEXT_COLOUR)
    legend(ax, outside=True)
    assert check(figure) == []

"""The figures package: looks, marks and files."""

import subprocess
import sys
from contextlib import nullcontext
from itertools import product

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine

from theodolite.core import ConfigError, Rows, UnknownNameError
from theodolite.figures import (
    BACKGROUND,
    PALETTE,
    band,
    curve,
    export,
    house_style,
    legend,
    line,
    log_axis,
    new_figure,
    reference_line,
    row_band,
    row_curve,
    row_line,
    save,
    series_style,
)

NAMES = ["residual", "plain", "frozen"]


def drawing():
    with house_style():
        figure, (ax,) = new_figure()
        band(
            ax,
            [1, 2, 4],
            [1, 2, 3],
            [0.1, 0.2, 0.3],
            style=series_style("plain", NAMES),
        )
        ax.set(title="loss $L$", xlabel="depth")
    return figure


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_importing_the_room_does_not_import_matplotlib():
    code = (
        "import sys, theodolite.figures as f; assert 'matplotlib' not in sys.modules;"
        "f.new_figure(); assert 'matplotlib' in sys.modules;"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there():
    import theodolite.figures as package

    assert all(hasattr(package, name) for name in package.__all__)


def test_house_style_leaves_the_settings_as_found():
    with matplotlib.rc_context({"lines.linewidth": 7.0, "axes.spines.top": True}):
        before = dict(matplotlib.rcParams)
        with house_style():
            assert matplotlib.rcParams["lines.linewidth"] != 7.0
            assert not matplotlib.rcParams["axes.spines.top"]
        assert dict(matplotlib.rcParams) == before


def test_settings_of_the_user_do_not_show_through():
    usual = save(drawing(), "a", ["svg"])
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "none"}):
        assert save(drawing(), "a", ["svg"]) == usual


def test_the_same_figure_gives_the_same_bytes():
    first, second = save(drawing(), "a"), save(drawing(), "a")
    assert list(first) == ["a.svg", "a.png", "a.pdf"]
    assert first == second


def test_a_file_is_drawn_once_and_as_if_it_were_drawn_twice(monkeypatch):
    """Its layout is made before; matplotlib would draw again to make sure of it."""
    drawn, draw = [], Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda *given: (drawn.append(1), draw(*given)))
    kinds = ("svg", "png", "pdf")
    with monkeypatch.context() as patch:
        patch.setattr(export, "_drawn_once", nullcontext)
        wanted = save(drawing(), "one", kinds)
    assert len(drawn) == 2 * len(kinds)
    drawn.clear()
    figure = drawing()
    assert save(figure, "one", kinds) == wanted
    assert len(drawn) == len(kinds)
    assert isinstance(figure.get_layout_engine(), PlaceHolderLayoutEngine)


def test_files_carry_no_date_and_no_font_by_name():
    files = save(drawing(), "a")
    assert b"dc:date" not in files["a.svg"]
    assert b"<text" not in files["a.svg"]
    assert b"CreationDate" not in files["a.pdf"]
    assert files["a.png"].startswith(b"\x89PNG")


def test_very_many_marks_become_pixels():
    def marks(n):
        figure, (ax,) = new_figure()
        x = np.linspace(0, 1, n)
        band(ax, x, np.sin(9 * x), style=series_style("plain", NAMES), line=False)
        return save(figure, "a", ["svg"])["a.svg"]

    few, many = marks(1_000), marks(3_000)
    assert b"<image" not in few
    assert b"<image" in many
    assert len(many) < len(few)


@pytest.mark.parametrize("stem", ["", "a/b", "..\\a"])
def test_a_stem_is_a_plain_name(stem):
    with pytest.raises(ConfigError, match="plain file name"):
        save(drawing(), stem)


def test_an_unknown_format_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'svg'"):
        save(drawing(), "a", ["svgz"])


def test_a_series_looks_the_same_wherever_it_is_drawn():
    assert series_style("plain", NAMES) == series_style("plain", (*NAMES, "more"))
    with pytest.raises(UnknownNameError, match="did you mean 'plain'"):
        series_style("plian", NAMES)


def test_no_two_series_look_alike():
    names = [f"s{i}" for i in range(28)]
    looks = [series_style(name, names) for name in names]
    assert len({(look.colour, look.marker) for look in looks}) == 28
    assert len({(look.colour, look.line) for look in looks}) == 28


def test_colours_are_apart_and_stand_out_from_white():
    shades = list(PALETTE.values())
    assert len(set(shades)) == len(shades)
    for shade in shades:
        assert 1.05 / (luminance(shade) + 0.05) > 2


def test_bounds_are_hollow_and_the_rest_solid():
    _, (ax,) = new_figure()
    style = series_style("plain", NAMES)
    line = band(ax, [1, 2, 4], [1, 2, 3], style=style, bound=[False, True, True])
    assert line.get_markevery() == [0]
    (hollow,) = (one for one in ax.lines if one is not line)
    assert hollow.get_xdata().tolist() == [2, 4]
    assert hollow.get_markerfacecolor() == BACKGROUND
    assert hollow.get_markeredgecolor() == style.colour


def test_an_error_shows_as_a_band_or_as_bars():
    _, (left, right) = new_figure(panels=(1, 2))
    style = series_style("plain", NAMES)
    band(left, [1, 2], [5, 6], [1, np.nan], style=style)
    band(right, [1, 2], [5, 6], [1, 2], style=style, kind="bars", line=False)
    (shade,) = left.collections
    assert np.ptp(shade.get_paths()[0].vertices[:, 1]) == 2  # from 4 to 6
    (bars,) = right.collections
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [
        [4, 6],
        [4, 8],
    ]
    assert right.lines[-1].get_linestyle() == "None"


def test_rows_are_drawn_as_their_columns_are():
    rows = Rows({"x": x, "value": x**2, "spread": 0.5} for x in (1.0, 2.0))
    _, (ax,) = new_figure()
    style = series_style("residual", NAMES)
    for draw, plain in ((row_band, band), (row_curve, curve), (row_line, line)):
        more = {"error": "spread"} if draw is row_band else {}
        drawn = draw(ax, rows, "x", style=style, label="a", **more)
        spread = [rows.values("spread")] if more else []
        wanted = plain(ax, [1, 2], [1, 4], *spread, style=style, label="a")
        np.testing.assert_array_equal(drawn.get_xydata(), wanted.get_xydata())
        assert drawn.get_linestyle() == wanted.get_linestyle()
    bands = [np.ptp(one.get_paths()[0].vertices[:, 1]) for one in ax.collections]
    assert bands == [4.0, 4.0]


def test_what_is_not_finite_is_left_out():
    _, (ax,) = new_figure()
    line = band(ax, [1, 2, 4], [1, np.inf, 3], style=series_style("plain", NAMES))
    assert line.get_xdata().tolist() == [1, 4]


@pytest.mark.parametrize("wrong", ["mean", "error", "bound"])
def test_columns_of_different_length_are_refused(wrong):
    _, (ax,) = new_figure()
    columns = {"mean": [1, 2], "error": [1, 2], "bound": [True, False]}
    columns[wrong] = columns[wrong][:1]
    with pytest.raises(ConfigError, match=f"1 values of {wrong}"):
        band(ax, [1, 2], style=series_style("plain", NAMES), **columns)


def test_a_prediction_is_a_dashed_line_without_markers():
    _, (ax,) = new_figure()
    line = curve(ax, [1, 2], [1, 2], style=series_style("plain", NAMES), label="theory")
    assert line.get_marker() == "None"
    assert line.is_dashed()
    assert [text.get_text() for text in legend(ax).get_texts()] == ["theory"]


def test_a_rule_runs_along_either_axis():
    _, (ax,) = new_figure()
    reference_line(ax, 2.0)
    reference_line(ax, 3.0, along="y")
    assert [list(line.get_ydata()) for line in ax.lines] == [[2, 2], [0, 1]]
    with pytest.raises(ConfigError, match="'x' or 'y'"):
        reference_line(ax, 1.0, along="z")


@pytest.mark.parametrize(("which", "base"), list(product("xy", [2, 10])))
def test_log_axis(which, base):
    figure, (ax,) = new_figure()
    band(ax, [1, 10, 1000], [1, 10, 1000], style=series_style("plain", NAMES))
    log_axis(ax, which, base=base)
    assert getattr(ax, f"get_{which}scale")() == "log"
    assert save(figure, "a", ["svg"])
    with pytest.raises(ConfigError, match="positive"):
        log_axis(ax, which, ticks=[0, 1])


def test_panels_come_in_reading_order():
    figure, axes = new_figure(panels=(2, 2), share_y=True)
    assert axes == figure.axes
    with pytest.raises(ConfigError, match=r"6\.6 by 3\.6"):
        new_figure(0, 3)

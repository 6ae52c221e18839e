"""Files of figures are small, and show the same."""

import re
from io import BytesIO

import numpy as np
from matplotlib.figure import Figure

from theodolite.figures import band, house_style, kind_style, legend, new_figure, save
from theodolite.figures.export import compact

STYLE = kind_style("plain")


def drawing(points=40):
    figure, (ax,) = new_figure()
    x = np.linspace(0, 1, points)
    band(ax, x, np.sin(9 * x), style=STYLE, label="a series", line=False)
    ax.set(title="loss $L_1$", xlabel="depth")
    legend(ax)
    return figure


def raw(figure: Figure) -> str:
    target = BytesIO()
    with house_style():
        figure.savefig(target, format="svg")
    return target.getvalue().decode()


def marks(svg):
    return len(re.findall("<use ", svg))


def places(svg):
    """Return where marks stand, in points."""
    points = re.findall(r'<use [^>]*x="([-\d.]+)" y="([-\d.]+)"', svg)
    return np.array(points, dtype=float)


def test_a_figure_takes_fewer_bytes_and_has_the_same_marks():
    svg = raw(drawing())
    small = compact(svg)
    assert len(small) < 0.75 * len(svg)
    assert marks(small) == marks(svg)
    assert len(re.findall(r"<path ", small)) == len(re.findall(r"<path ", svg))
    apart = np.abs(places(svg)[:, None] - places(small)[None]).max(axis=2)
    assert apart.min(axis=1).max() < 0.006


def test_parts_that_are_referred_to_are_there():
    small = compact(raw(drawing()))
    there = re.findall(r' id="([^"]*)"', small)
    assert len(set(there)) == len(there)
    assert set(re.findall(r'[("]#([\w.-]+)', small)) <= set(there)


def test_a_style_that_differs_stays_with_its_mark():
    two = '<use x="1" style="fill: red"/><use x="2" style="fill: blue"/>'
    assert compact(f"<g>{two}</g>") == f"<g>{two}</g>"
    same = two.replace("blue", "red")
    shorter = '<g style="fill: red"><use x="1"/><use x="2"/></g>'
    assert compact(f"<g>{same}</g>") == shorter


def test_very_many_marks_become_pixels():
    few, many = (save(drawing(n), "a", ["svg"])["a.svg"] for n in (1_000, 3_000))
    assert b"<image" not in few
    assert b"<image" in many
    assert len(many) < len(few)

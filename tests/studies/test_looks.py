"""Colours belong to kinds, in every figure of a paper."""

import ast
from pathlib import Path

import pytest

import theodolite
from tests.studies.looks import PAPERS, kinds_of, strangers
from theodolite import figures
from theodolite.figures import kind_style
from theodolite.studies import catalogue, judging

SOURCE = Path(theodolite.__file__).parent / "studies"
DRAWN = sorted([*SOURCE.glob("*/*/*figure.py"), *SOURCE.glob("*/shared/*/figure.py")])
NAMED = {"black", "white", "red", "green", "blue", "grey", "gray"}


@pytest.mark.parametrize("paper", PAPERS)
def test_no_two_kinds_of_a_paper_share_a_colour(paper):
    looks = {kind_style(name).colour: name for name in PAPERS[paper]}
    assert len(looks) == len(PAPERS[paper])


def test_every_paper_has_its_kinds():
    assert set(PAPERS) == {kinds_of(entry) for entry in catalogue()}


def test_a_kind_of_another_paper_is_seen():
    figure, (ax,) = figures.new_figure()
    figures.line(ax, [0, 1], [0, 1], style=kind_style("average"))
    assert not strangers("macdonald2023skip", figure)
    figures.line(ax, [0, 1], [1, 0], style=kind_style("scalar_norm"))
    figures.line(ax, [0, 1], [1, 0], style=kind_style("first_layer_kinks"))
    assert strangers("macdonald2023skip", figure) == [
        kind_style("first_layer_kinks").colour.lower()
    ]


def test_figures_are_looked_at_when_they_are_saved():
    figure, (ax,) = figures.new_figure()
    ax.plot([0, 1], [0, 1], color="#123456")
    with pytest.raises(AssertionError, match="colour of no kind"):
        figures.save(figure, "strange")
    assert judging.figures.save is figures.save


def own_colours(source):
    """List the colours that a module names itself."""
    return [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and _is_colour(node.value)
    ]


def _is_colour(value):
    if not isinstance(value, str):
        return False
    grey = value.startswith("0.") and value[2:].isdigit()
    return value in NAMED or grey or (value.startswith("#") and len(value) == 7)


@pytest.mark.parametrize("path", DRAWN, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_figure_names_no_colours_of_its_own(path):
    """But for the phases of the diagram, whose tiles are no series."""
    colours = own_colours(path.read_text())
    assert len(colours) == (3 if path.parent.name == "phase_diagram" else 0), colours
    assert "series_style" not in path.read_text()


def test_a_colour_of_its_own_is_seen():
    assert own_colours('panel.plot(x, y, color="0.4", ec="white", label="#1")') == [
        "0.4",
        "white",
    ]

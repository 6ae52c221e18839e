import numpy as np
import pytest

from theodolite.core import ConfigError, Rows
from theodolite.figures import draw_cross_section


def rows(blocks=3):
    rows = [
        {"quantity": "branch_gain", "value": 0.5 + k, "error": 0.1, "depth": k,
         "block": f"b{k}"}
        for k in range(blocks)
    ]  # fmt: skip
    rows += [
        {"quantity": "singular_value", "value": 10.0 ** (share - k), "error": None,
         "depth": k, "block": f"b{k}", "share": share}
        for k in range(blocks) for share in (0.0, 0.5, 1.0)
    ]  # fmt: skip
    return Rows(rows)


def test_strips_hold_the_logarithm_of_every_value_at_its_place():
    figure = draw_cross_section(rows(), title="net")
    strips, gains = figure.axes[:2]
    grid = strips.collections[0].get_array()
    assert np.asarray(grid).reshape(3, 3) == pytest.approx(
        np.array([[0.0, -1, -2], [0.5, -0.5, -1.5], [1.0, 0, -1]])
    )
    assert strips.get_title(loc="left") == "net"
    heights = [list(line.get_ydata()) for line in gains.lines]
    assert [0.5, 1.5, 2.5] in heights
    assert pytest.approx([0.4, 1.4, 2.4]) in heights, "caps of the errors"
    assert [t.get_text() for t in gains.get_xticklabels()] == ["b0", "b1", "b2"]


def test_a_block_without_a_number_leaves_its_place_empty():
    some = Rows(row for row in rows() if row["depth"] != 1)
    grid = draw_cross_section(some).axes[0].collections[0].get_array()
    assert np.isnan(np.ma.filled(grid, np.nan).reshape(3, 3)[:, 1]).all()


def test_many_blocks_name_some():
    figure = draw_cross_section(rows(200))
    assert 20 <= len(figure.axes[1].get_xticklabels()) <= 40


def test_a_singular_value_of_zero_is_drawn_as_cold():
    cold = Rows([{**row, "value": 0.0} for row in rows()])
    figure = draw_cross_section(cold.where(quantity="singular_value"))
    grid = np.asarray(figure.axes[0].collections[0].get_array())
    assert (grid == -12).all()


def test_rows_without_depth_are_refused():
    with pytest.raises(ConfigError, match="by depth: measure the map"):
        draw_cross_section(Rows([{"quantity": "loss", "value": 1.0}]))

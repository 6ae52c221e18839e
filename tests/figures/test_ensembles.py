"""Pictures of path ensembles show what the rows say."""

import numpy as np
import pytest

from theodolite.core import ConfigError, Rows
from theodolite.figures import draw_ensemble, draw_unravelled, save


def ensemble():
    rows = []
    for part, shares in (("output", [0.5, 0.3, 0.2]), ("gradient", [0.1, 0.2, 0.7])):
        for length, share in enumerate(shares):
            place = {"part": part, "length": length, "error": 0.01}
            rows.append({"quantity": "share", "value": share, **place})
            rows.append({"quantity": "law", "value": share + 0.01, **place})
        depth = float(np.dot(shares, range(3)))
        rows.append({"quantity": "effective_depth", "part": part, "value": depth})
        rows.append({"quantity": "beta", "part": part, "value": 0.7})
    return Rows(rows)


def test_shares_laws_and_depths_are_drawn():
    (panel,) = draw_ensemble(ensemble(), title="three").axes
    drawn = [np.asarray(line.get_ydata(), float).tolist() for line in panel.lines]
    for wanted in ([0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.11, 0.21, 0.71]):
        assert any(np.allclose(one, wanted) for one in drawn if len(one) == 3)
    rules = [line.get_xdata()[0] for line in panel.lines if len(line.get_xdata()) == 2]
    assert sorted(rules) == pytest.approx([0.7, 1.6])


def test_paths_are_as_wide_as_their_energy():
    energy = {"00": 0.6, "10": 0.3, "01": 0.1, "11": 1e-9}
    rows = Rows(
        {"quantity": "energy", "path": path, "value": value, "error": 0.0}
        for path, value in energy.items()
    )
    figure = draw_unravelled(rows, title="two blocks")
    (panel,) = figure.axes
    widths = [line.get_linewidth() for line in panel.lines[::2]]
    assert widths[0] > widths[2] > widths[1] > widths[3]  # shortest first
    boxes = [len(line.get_xdata()) for line in panel.lines[1::2]]
    assert boxes == [0, 1, 1, 2]
    assert [text.get_text() for text in panel.texts][-1] == "< 0.1 %"
    assert save(figure, "paths", ["svg"])["paths.svg"]


@pytest.mark.parametrize("draw", [draw_ensemble, draw_unravelled])
def test_other_rows_are_refused(draw):
    with pytest.raises(ConfigError, match=r"pass .*rows"):
        draw(Rows([{"quantity": "ratio", "value": 1.0}]))

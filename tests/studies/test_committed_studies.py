"""Studies whose long runs travel with the package: judged on them, and run again."""

import os

import numpy as np
import pytest

from tests.studies.worlds import rows_of
from theodolite import figures
from theodolite.studies import find

# Each with a cheap cell of its paper scale.
CELLS = {
    "initial_condition": {"kind": "two_shortcut", "depth": 2, "trial": 3},
}


@pytest.mark.parametrize("name", CELLS)
def test_the_committed_run_is_judged_where_it_is_there(name, smoke_root):
    """Verdicts and figures rest on it, and say so; this run's rows stay apart."""
    study, predicted, measured = rows_of(smoke_root, name)
    quick = study.presets["quick"]
    assert quick.committed
    assert {"source": "committed"} in study.cells(quick)
    assert not len(measured.where(source="committed"))
    both = measured + study.measure(quick, {"source": "committed"})
    for claim in study.claims:
        alone = claim.check(predicted, measured)
        judged = claim.check(predicted, both)
        assert judged.rests_on == "committed"
        assert judged.alone == alone.outcome
        assert "committed run, up to 10 networks" in judged.because
        assert "committed" not in alone.because
    assert study.compare(predicted, both) == study.compare(predicted, measured)


@pytest.mark.parametrize("name", CELLS)
def test_figures_are_drawn_from_the_committed_run(name, smoke_root):
    study, predicted, measured = rows_of(smoke_root, name)
    both = measured + study.measure(study.presets["quick"], {"source": "committed"})
    with figures.house_style():
        for drawing in study.drawings:
            drawn = drawing.draw(predicted, both)
            assert all(axes.lines or axes.collections for axes in drawn.axes)


@pytest.mark.parametrize("name", CELLS)
def test_rows_of_the_committed_run_carry_their_error(name):
    study = find(name).study
    rows = study.measure(study.presets["quick"], {"source": "committed"})
    assert len(rows.where(side="predicted"))
    bare = [row for row in rows if row["value"] is not None and row["error"] is None]
    assert all(row.get("status") == "rounding" for row in bare), "bounds have none"


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_of_the_committed_run_is_found_again(name):
    study = find(name).study
    paper = study.presets["paper"]
    assert CELLS[name] in study.cells(paper)
    assert len(study.committed.rows(paper, CELLS[name]))
    assert not len(study.committed.rows(study.presets["quick"], CELLS[name]))


@pytest.mark.skipif(
    not os.path.isdir(os.path.join(os.environ.get("THEODOLITE_DATA", ""), "mnist")),
    reason="THEODOLITE_DATA names no folder with mnist in it",
)
@pytest.mark.parametrize("name", CELLS)
def test_a_cell_of_the_committed_run_is_reproduced(name):
    study = find(name).study
    paper, labels = study.presets["paper"], study.committed.labels
    kept = {
        tuple(row.get(label) for label in labels): row["value"]
        for row in study.committed.rows(paper, CELLS[name])
        if row.get("value") is not None
    }
    new = {
        tuple(row.get(label) for label in labels): row
        for row in study.measure(paper, CELLS[name])
    }
    assert kept.keys() <= new.keys()
    for key, value in kept.items():
        error = 10 * (new[key].get("error") or 0)
        np.testing.assert_allclose(
            new[key]["value"], value, rtol=1e-5, atol=error, err_msg=str(key)
        )

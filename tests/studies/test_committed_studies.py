"""Studies whose long runs travel with the package: judged on them, and drawn."""

from functools import cache

import pytest

from tests.figures.checks import check
from tests.studies.counterfactuals import theory_of
from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows, decide
from theodolite.studies import catalogue, with_committed

COMMITTED = [entry for entry in catalogue() if entry.study.committed is not None]
NAMES = [entry.name for entry in COMMITTED]


@cache
def committed_evidence(root, entry):
    """Return what a run at QUICK sees that has measured nothing itself."""
    study, config = entry.study, entry.study.presets["quick"]
    assert config.committed
    own = PredictedAndMeasured(theory_of(root, entry), Rows())
    return with_committed(study, config, own)


def test_long_runs_are_there():
    assert {"initial_condition", "weight_norms", "along_training"} <= set(NAMES)


@pytest.mark.parametrize("entry", COMMITTED, ids=NAMES)
def test_verdicts_rest_on_the_committed_run_and_say_so(entry, smoke_root):
    """One claim of each kind; all verdicts are checked with their papers."""
    evidence = committed_evidence(smoke_root, entry)
    kinds = {claim.own_rows_only: claim for claim in entry.study.claims}
    for claim in kinds.values():
        verdict = decide(claim, evidence)
        wanted = "own" if claim.own_rows_only else "committed"
        assert verdict.rests_on == wanted
        if wanted == "committed":
            assert verdict.own is None, "a run without rows says nothing of its own"
            assert verdict.to_dict()["verdict"] == verdict.committed.outcome


@pytest.mark.parametrize("entry", COMMITTED, ids=NAMES)
def test_figures_are_drawn_from_the_committed_run(entry, smoke_root):
    both = committed_evidence(smoke_root, entry).committed
    with figures.house_style():
        for drawing in entry.study.drawings:
            drawn = drawing.draw(drawing.table(both))
            assert not check(drawn), drawing.name
            assert drawn.axes
            assert all(
                axes.lines or axes.collections or axes.patches or axes.images
                for axes in drawn.axes
            )


@pytest.mark.parametrize("entry", COMMITTED, ids=NAMES)
def test_rows_of_the_committed_run_say_what_is_known(entry):
    rows = entry.study.committed.run.rows()
    assert len(rows)
    assert not any("source" in row for row in rows)
    assert all("error" in row for row in rows if isinstance(row.get("value"), float))

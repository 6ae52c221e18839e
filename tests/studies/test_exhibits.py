"""Rows for the explorer of a paper travel from the study by its summary."""

from dataclasses import replace

import pytest

from tests.studies import tiny
from theodolite.report import render
from theodolite.report.finished_runs import judged_runs
from theodolite.studies import (
    Committed,
    CommittedRun,
    catalogue,
    find,
    pack,
    papers,
    plan_study,
    run_study,
)


def commit(folder):
    """Write a package with a committed run of two networks."""
    rows = [{"quantity": "y", "trial": t, "value": 2.0, "error": 0.0} for t in (7, 8)]
    (folder / "long_runs" / "committed").mkdir(parents=True)
    (folder / "long_runs" / "__init__.py").touch()
    text = pack(rows, config={}, made={})
    (folder / "long_runs" / "committed" / "line.json").write_text(text)
    return Committed(run=CommittedRun("long_runs", "line"), labels=("trial",))


@pytest.fixture
def summary(monkeypatch, tmp_path):
    """Run the tiny study on its own, or beside a committed run."""
    tiny.install(monkeypatch)
    monkeypatch.syspath_prepend(tmp_path)

    def summary(committed):
        plan = plan_study(find("line"), scale="smoke")
        if committed:
            long = commit(tmp_path)
            plan.entry.__dict__["study"] = replace(tiny.STUDY, committed=long)
            plan = replace(plan, config=replace(plan.config, committed=True))
        svg = {"root": tmp_path, "jobs": 0, "figure_formats": ["svg"]}
        return run_study(plan, **svg).summary

    return summary


def test_a_run_keeps_its_exhibits(summary, tmp_path):
    (kept,) = summary(committed=False).exhibits
    assert (kept.name, kept.source) == ("path_ensembles", "own")
    assert kept.columns == ("quantity", "network", "length", "value", "error")
    assert kept.lines[1] == ("share", "trial 0", 1, 0.5, 0.0)
    assert len(kept.lines) == 6
    _, page = render(judged_runs(tmp_path)).values()
    assert '"trial 2"' in page
    assert "theodolite run tiny2020paper/other" in page
    assert "<code>theodolite run tiny2020paper/line</code>, " not in page


def test_committed_rows_stand_before_those_of_the_run(summary):
    both = summary(committed=True).exhibits
    assert [one.source for one in both] == ["committed", "own"]
    assert [len(one.lines) for one in both] == [4, 6]


def test_every_explorer_names_studies_of_its_paper_that_have_exhibits():
    for paper in papers():
        wanted = set(paper.explorer.studies) if paper.explorer else set()
        names = {e.name for e in catalogue(paper.name) if e.study.exhibits}
        assert wanted == names

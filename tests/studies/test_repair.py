"""Harm done to a finished run is named, and healed from its cells."""

import json
import os
import shutil
from dataclasses import replace

import pytest

from tests.runs.test_damage import HARM
from tests.studies import tiny
from theodolite.core import RunError
from theodolite.runs import RunFolder, results_in
from theodolite.studies import find, plan_study, redraw, repair_runs, run_study

FILES = ["predicted.jsonl", "summary.json", "run.json", "figures/line.svg"]
# Every kind of harm to one file, and one kind to every file.
CASES = [("predicted.jsonl", kind) for kind in HARM]
CASES += [(name, "altered") for name in FILES[1:]]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished run that the tests copy."""
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        tiny.install(patch)
        finished = run_study(plan_study(find("line"), scale="smoke"), root=root, jobs=0)
        assert tiny.calls.count("measure") == 3
    return finished


@pytest.fixture
def whole(made, monkeypatch, tmp_path):
    """A finished run under a root of its own."""
    tiny.install(monkeypatch)
    source = made.folder.path.parents[3]
    shutil.copytree(source / "runs", tmp_path / "runs")
    path = tmp_path / made.folder.path.relative_to(source)
    return replace(made, folder=RunFolder.open(path))


def rerun(whole):
    root = whole.folder.path.parents[3]
    return run_study(plan_study(find("line"), scale="smoke"), root=root, jobs=0)


def harm_file(folder, name, harm):
    file = folder.path / name
    before = file.read_bytes()
    file.write_bytes(harm(before).replace(b'"n_seeds": 3', b'"n_seeds": x'))
    return before


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_repair_heals_from_the_cells(whole, tmp_path, name, kind):
    before = harm_file(whole.folder, name, HARM[kind])
    (done,) = repair_runs(tmp_path)
    assert (done.healed, done.left) == ((name,), ())
    assert "measure" not in tiny.calls
    assert whole.folder.damages() == []
    if name in ("predicted.jsonl", "figures/line.svg"):
        assert (whole.folder.path / name).read_bytes() == before
    last = results_in(tmp_path).last("tiny2020paper", "line")
    assert last[1].claims == whole.summary.claims
    assert last[1].command == whole.summary.command
    (again,) = repair_runs(tmp_path)
    assert (again.healed, again.left) == ((), ())


@pytest.mark.parametrize("name", FILES)
def test_a_run_heals_itself_and_computes_nothing_that_is_whole(whole, name):
    harm_file(whole.folder, name, HARM["cut"])
    again = rerun(whole)
    assert again.execution.n_computed == 0
    assert again.summary.claims == whole.summary.claims
    assert again.folder.damages() == []


def test_an_altered_prediction_turns_no_verdict(whole):
    file = whole.folder.path / "predicted.jsonl"
    file.write_text(file.read_text().replace("1e-16", "0.5"))
    assert rerun(whole).summary.claims == whole.summary.claims


def test_whole_files_are_left_alone(whole, tmp_path):
    files = {p: p.stat().st_mtime_ns for p in whole.folder.path.rglob("*.*")}
    list(repair_runs(tmp_path))
    assert {p: p.stat().st_mtime_ns for p in whole.folder.path.rglob("*.*")} == files


@pytest.mark.parametrize("harm", ["torn", "gone"])
def test_damaged_cells_are_left_to_a_run(whole, tmp_path, harm):
    file = sorted((whole.folder.path / "cells").iterdir())[1]
    if harm == "torn":
        file.write_bytes(file.read_bytes()[:-3])
    else:
        file.unlink()
        (whole.folder.path / "summary.json").unlink()
    (done,) = repair_runs(tmp_path)
    (problem,) = done.left
    command = f"`theodolite run {tiny.NAME} --scale smoke --out {tmp_path}`"
    assert problem.startswith(
        f"1 of 3 cells in {whole.folder.path} are missing or damaged"
    )
    assert command in problem
    with pytest.raises(RunError, match="1 of 3 cells"):
        redraw(find("line"), whole.folder)
    assert rerun(whole).execution.n_computed == 1
    (done,) = repair_runs(tmp_path)
    assert done.left == ()


def test_what_the_launches_do_not_say_the_presets_do(whole, tmp_path):
    shutil.rmtree(whole.folder.path / "launches")
    (whole.folder.path / "run.json").write_text("")
    (done,) = repair_runs(tmp_path)
    assert "run.json" in done.healed
    assert results_in(tmp_path).folders[0].spec == whole.folder.spec


def test_a_run_that_nothing_describes_is_named_and_left(monkeypatch, tmp_path):
    tiny.install(monkeypatch)
    plan = plan_study(find("line"), scale="smoke", n_seeds=2)
    folder = run_study(plan, root=tmp_path, jobs=0).folder
    shutil.rmtree(folder.path / "launches")
    (folder.path / "run.json").write_text("")
    (done,) = repair_runs(tmp_path)
    assert "give the command that made it once more" in done.left[0]
    again = run_study(plan, root=tmp_path, jobs=0)
    assert again.execution.n_computed == 0


def test_a_run_of_another_version_is_left_as_it_is(whole):
    (whole.folder.path / "figures" / "line.svg").write_text("")
    entry = find("line")
    entry.__dict__["study"] = replace(entry.study, revision=2)
    with pytest.raises(RunError, match="another version of tiny2020paper/line"):
        redraw(entry, whole.folder)


def test_a_damaged_record_of_a_launch_is_set_aside(whole, tmp_path):
    (record,) = (whole.folder.path / "launches").iterdir()
    record.write_text("{")
    (done,) = repair_runs(tmp_path)
    assert done.healed == (f"launches/{record.name}",)
    aside = whole.folder.path / "damaged" / "launches" / record.name
    assert aside.read_text() == "{"
    summary = json.loads((whole.folder.path / "summary.json").read_text())
    assert summary["judged"] == whole.summary.judged


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.timeout(120)  # a pipe that is opened waits for ever
@pytest.mark.parametrize("name", [*FILES, "checks/summary.json.sha256"])
def test_a_named_pipe_is_not_opened_and_repaired(whole, tmp_path, name):
    file = whole.folder.path / name
    file.unlink()
    os.mkfifo(file)
    read = ("run.json", "summary.json", "checks/summary.json.sha256")
    assert len(results_in(tmp_path).damages) == (name in read)
    (done,) = repair_runs(tmp_path)
    assert done.left == ()
    assert file.is_file()
    assert whole.folder.damages() == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.timeout(120)
def test_a_cell_that_is_a_named_pipe_is_computed_again(whole, tmp_path):
    file = min((whole.folder.path / "cells").glob("*.jsonl"))
    file.unlink()
    os.mkfifo(file)
    (done,) = repair_runs(tmp_path)
    assert done.left[0].startswith("1 of 3 cells")
    rerun(whole)
    assert tiny.calls.count("measure") == 1
    assert whole.folder.damages() == []

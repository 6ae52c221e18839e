"""What is found under a root: the last of each study, damage named, each file once."""

import json
from pathlib import Path

import pytest

from tests.report.papers import TRAINING
from theodolite.core import Cost, RunError
from theodolite.runs import DamagedError, RunFolder, RunSpec, results_in

NAMES = (TRAINING["paper"]["name"], TRAINING["study"]["name"])


def judged(root, when, **config):
    """Make a run that was judged at a time."""
    paper, study = NAMES
    asked = RunSpec(paper=paper, study=study, scale="smoke", config=config)
    folder = RunFolder.create(root, asked)
    summary = {key: value for key, value in TRAINING.items() if key != "config"}
    folder.write("summary.json", json.dumps({**summary, "judged": when}))
    return folder


@pytest.fixture
def runs(tmp_path):
    """Three runs of a study; the second was judged last."""
    times = ("2026-01-01", "2026-01-03", "2026-01-02")
    return [judged(tmp_path, when, n=n) for n, when in enumerate(times)]


def test_the_last_run_is_the_one_judged_last(runs, tmp_path):
    (runs[0].path / "summary.json").touch()
    results = results_in(tmp_path)
    assert results.last(*NAMES)[0].path == runs[1].path
    assert [folder.path for folder in results.folders] == [
        run.path for run in reversed(runs)
    ]
    assert results.last("other", "study") is None
    assert results_in(tmp_path / "nowhere").last(*NAMES) is None


@pytest.mark.parametrize("name", ["summary.json", "run.json"])
def test_a_damaged_run_is_named_and_the_rest_is_shown(runs, tmp_path, name):
    (runs[1].path / name).write_bytes(b"\xff")
    results = results_in(tmp_path)
    assert [str(damage) for damage in results.damages] == [
        f"{runs[1].path / name} is not what was written"
    ]
    assert results.last(*NAMES)[0].path == runs[2].path
    for run in runs:
        (run.path / name).write_bytes(b"")
    with pytest.raises(DamagedError, match="theodolite repair --out"):
        results_in(tmp_path).last(*NAMES)


def test_a_run_json_that_is_gone_is_named_where_there_are_cells(runs, tmp_path):
    runs[0].save({"a": 1}, [{"quantity": "x"}], Cost())
    for run in runs[:2]:
        (run.path / "run.json").unlink()
    (damage,) = results_in(tmp_path).damages
    assert str(damage) == f"{runs[0].path / 'run.json'} is missing"


def test_each_file_is_read_once(runs, tmp_path, monkeypatch):
    read, original = [], Path.read_bytes
    monkeypatch.setattr(
        Path, "read_bytes", lambda path: read.append(path) or original(path)
    )
    results_in(tmp_path)
    assert sorted(path for path in read if path.suffix == ".json") == sorted(
        run.path / name for run in runs for name in ("run.json", "summary.json")
    )


def test_a_root_that_cannot_be_read_is_a_sentence():
    with pytest.raises(RunError, match="File name too long"):
        results_in("x" * 5000)

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.runs.processes import running, until
from tests.runs.work import CELLS, spec
from theodolite.core import ConfigError, Cost, RunError
from theodolite.runs import RunFolder, RunSpec, runs_in
from theodolite.runs.folder.atomic import _here


def rows_of(cell):
    return [{"quantity": "x", "value": cell["trial"] / 3}]


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path, spec(width=8))


def test_run_json_says_where_the_numbers_come_from(tmp_path):
    asked = RunSpec(
        paper="p", study="s", scale="quick", config={"w": (1, 2)}, seeds=(0, 7)
    )
    folder = RunFolder.create(tmp_path, asked)
    assert folder.path == tmp_path / "runs" / "p" / "s" / asked.digest
    info = json.loads((folder.path / "run.json").read_text())
    assert info == folder.info
    assert info["config"] == {"w": [1, 2]}
    assert info["seeds"] == [0, 7]
    assert info["packages"]["numpy"] == np.__version__
    assert {"version", "commit", "dirty", "python", "platform", "processors"} <= set(
        info
    )
    assert info["created"].endswith("+00:00")
    assert RunFolder.open(folder.path).spec == asked


def test_a_folder_is_kept_when_asked_for_again(folder, tmp_path):
    folder.save(CELLS[0], rows_of(CELLS[0]), Cost())
    again = RunFolder.create(tmp_path, spec(width=8))
    assert again.info == folder.info
    assert again.done(CELLS[0])


def test_a_folder_of_another_run_is_refused(folder, tmp_path):
    file = folder.path / "run.json"
    before = file.read_text()
    file.write_text(before.replace('"width": 8', '"width": 9'))
    with pytest.raises(RunError, match=r"holds a run with config .*9.*not .*8"):
        RunFolder.create(tmp_path, spec(width=8))
    with pytest.raises(RunError, match="is not a run folder"):
        RunFolder.open(tmp_path / "nowhere")


def test_values_come_back_bit_for_bit(folder):
    values = [0.1, 1e-320, -0.0, float("inf"), float("nan"), 2.0**60 + 1]
    text = "line\u2028separator\x85and\nfeed"
    rows = [{"quantity": "x", "i": i, "value": v} for i, v in enumerate(values)]
    folder.save({"kind": np.str_("a"), "trial": np.int64(0)}, rows, Cost(wall_s=0.1))
    folder.save({"kind": "a", "trial": 1}, [{"quantity": text}], Cost())
    back = folder.rows([{"trial": 0, "kind": "a"}])
    assert np.array_equal(back.values().view(np.int64), np.array(values).view(np.int64))
    assert back[0] == {"kind": "a", "trial": 0, **rows[0]}
    assert folder.rows([{"kind": "a", "trial": 1}])[0]["quantity"] == text


def test_order_of_rows_and_cost_is_that_of_the_cells(folder, tmp_path):
    other = RunFolder.create(tmp_path / "other", spec(width=8))
    for where, cells in ((folder, CELLS), (other, CELLS[::-1])):
        for cell in cells:
            where.save(cell, rows_of(cell), Cost(wall_s=0.1 * cell["trial"], passes=2))
    assert folder.rows() == other.rows()
    assert folder.rows().column("trial")[:10] == list(range(10))
    assert folder.rows(CELLS[5:2:-1]).column("trial") == [5, 4, 3]
    assert folder.cost() == other.cost()
    assert folder.cost().passes == 60
    assert folder.cost([CELLS[1], CELLS[1]]).passes == 2


def test_numbers_sort_as_numbers(folder):
    for depth in (10, 9, 2.5, 100):
        folder.save({"depth": depth}, [{"quantity": "x"}], Cost())
    assert folder.rows().column("depth") == [2.5, 9, 10, 100]


@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "rows", "foreign"])
def test_a_damaged_cell_is_not_trusted(folder, harm):
    for cell in CELLS[:2]:
        folder.save(cell, rows_of(cell) * 3, Cost())
    file, other = sorted((folder.path / "cells").glob("*.jsonl"))
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    harmed = {
        "cut": [whole[:n] for n in range(len(whole) - 1)],
        "flip": [whole.replace(b"0.0", b"0.5")],
        "empty": [b"", b"\n", b"{}\n", b"[]\n[]\n"],
        "rows": [b"".join(lines[:-2] + lines[-1:])],
        "foreign": [other.read_bytes(), b"\xff\xfe\n\x00\n"],
    }[harm]
    for content in harmed:
        assert content != whole
        file.write_bytes(content)
        assert not folder.done(CELLS[0])
        assert folder.pending(CELLS[:2]) == CELLS[:1]
    file.write_bytes(whole)
    assert folder.done(CELLS[0])


def test_a_label_that_contradicts_its_cell_is_refused(folder):
    with pytest.raises(ConfigError, match="a row says trial=1"):
        folder.save(CELLS[0], [{"trial": 1}], Cost())
    with pytest.raises(ConfigError, match="label 'a' of a cell"):
        folder.done({"a": [1]})
    with pytest.raises(ConfigError, match="cell cannot be saved"):
        folder.done({"a": float("nan")})
    assert not folder.rows()


def test_files_of_the_study(folder):
    path = folder.write("figures/fig 1.svg", "<svg>é</svg>")
    assert path.read_text() == folder.read("figures/fig 1.svg") == "<svg>é</svg>"
    assert folder.write("a.bin", b"\xff").read_bytes() == b"\xff"
    assert folder.read("nothing.json") is None
    for name in ("run.json", "cells/x", "../x", "/x", "", "a/../../x"):
        with pytest.raises(ConfigError, match="is not a name"):
            folder.write(name, "")


def test_remains_of_the_dead_are_swept_and_of_the_living_kept(folder, tmp_path):
    cells = folder.path / "cells"
    dead = cells / f".{_here()}-{2**22 + 1}-aaaa.part"
    ended = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert ended.stdout is not None
    with ended.stdout:
        ended.stdout.read()
    until(lambda: not running(ended.pid))  # ended, and not collected: a zombie
    zombie = cells / f".{_here()}-{ended.pid}-aaaa.part"
    living = cells / f".{_here()}-{os.getpid()}-aaaa.part"
    far = cells / ".00000000-1-aaaa.part"
    far_and_old = cells / ".00000000-1-bbbb.part"
    foreign = cells / ".notes.part"
    for file in (dead, zombie, living, far, far_and_old, foreign):
        file.touch()
    os.utime(far_and_old, (time.time() - 7200,) * 2)
    left = folder.path / "locks" / "left"
    left.touch()
    with folder.lock(CELLS[0]) as mine:
        assert mine
        RunFolder.create(tmp_path, spec(width=8))
        with folder.lock(CELLS[0]) as again:
            assert not again
    assert not dead.exists()
    assert not zombie.exists()
    ended.wait()
    assert not far_and_old.exists()
    assert not left.exists()
    assert living.exists()
    assert far.exists()
    assert foreign.exists()


def test_launches_leave_records(folder):
    with folder.launch(jobs=2) as launch:
        assert folder.launches()[0]["outcome"] is None
        launch.count(Cost(cpu_s=0.5))
    with pytest.raises(KeyboardInterrupt), folder.launch(jobs=0):
        raise KeyboardInterrupt
    first, second = folder.launches()
    assert first["outcome"] == "finished"
    assert (first["n_computed"], first["cpu_s"], first["jobs"]) == (1, 0.5, 2)
    assert first["wall_s"] > 0
    assert first["pid"] == os.getpid()
    assert second["outcome"] == "interrupted"


def test_runs_are_found_newest_first(tmp_path):
    first, second = (RunFolder.create(tmp_path, spec(width=w)) for w in (1, 2))
    half = tmp_path / "runs" / "p" / "s" / "half"
    half.mkdir(parents=True)
    (half.parent / "other").mkdir()
    (half.parent / "other" / "run.json").write_text("[1]")
    assert [run.path for run in runs_in(tmp_path)] == [second.path, first.path]
    assert runs_in(tmp_path / "nowhere") == []

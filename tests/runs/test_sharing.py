"""Several processes on one folder: nothing torn, nothing computed twice."""

import sys
import threading
from collections import Counter

import pytest

from tests.runs.processes import launch, python, until
from tests.runs.work import CELLS, Logged, spec, started
from theodolite.core import Cost
from theodolite.runs import RunFolder, execute
from theodolite.runs.folder.spec import decode

WRITER = """
import sys
from pathlib import Path
from tests.runs.work import CELLS, spec
from theodolite.core import Cost
from theodolite.runs import RunFolder
folder = RunFolder.create(sys.argv[1], spec(width=8))
n = 0
while not Path(sys.argv[2]).exists():
    n += 1
    rows = [{"quantity": "x", "n": n, "text": "x" * 400}] * (50 + 500 * (n % 3))
    folder.save(CELLS[0], rows, Cost())
    folder.write("summary.json", "<" + str(n) * 40_000 + ">")
print(n)
"""


def test_a_reader_never_sees_half_a_file(tmp_path):
    folder = RunFolder.create(tmp_path, spec(width=8))
    folder.save(CELLS[0], [{"quantity": "x", "n": 0}], Cost())
    folder.write("summary.json", "<>")
    (file,) = (folder.path / "cells").glob("*.jsonl")
    results, enough = [], tmp_path / "enough"
    writer = threading.Thread(
        target=lambda: results.append(python(WRITER, tmp_path, enough))
    )
    writer.start()
    seen = set()
    while len(seen) < 40 and writer.is_alive():
        assert decode(file.read_bytes()) is not None
        rows = folder.rows()
        assert len(rows) in (1, 50, 550, 1050)
        assert len(rows.levels("n")) == 1
        seen.update(rows.levels("n"))
        summary = folder.read("summary.json")
        assert summary is not None
        assert summary[0] + summary[-1] == "<>"
    enough.touch()
    writer.join()
    assert results[0].returncode == 0, results[0].stderr
    assert len(seen) == 40, "the reader saw too few versions to prove anything"


def test_two_processes_share_the_cells(tmp_path):
    log = tmp_path / "log"
    both = [launch(tmp_path, log, jobs=1) for _ in range(2)]
    counts = []
    for process in both:
        out, err = process.communicate(timeout=250)
        assert process.returncode == 0, err
        counts.append([int(word) for word in out.split()])
    assert Counter(started(log)) == {(c["kind"], c["trial"]): 1 for c in CELLS}
    assert all(sum(count) == 30 for count in counts)
    assert sum(computed for _, computed, _ in counts) == 30
    folder = RunFolder.create(tmp_path, spec(width=8))
    assert not folder.pending(CELLS)
    assert len(folder.launches()) == 2
    whole = RunFolder.create(tmp_path / "whole", spec(width=8))
    execute(whole, CELLS, Logged(tmp_path / "other", 0), jobs=0)
    assert folder.rows() == whole.rows()


@pytest.mark.parametrize("finished", [True, False])
def test_a_cell_in_other_hands_is_waited_for_or_taken_up(tmp_path, finished):
    log = tmp_path / "log"
    folder = RunFolder.create(tmp_path, spec(width=8))

    def hold():
        with folder.lock(CELLS[0]) as mine:
            held.set()
            assert mine
            until(lambda: len(started(log)) == 3)
            if finished:
                folder.save(CELLS[0], [{"quantity": "theirs"}], Cost())

    held = threading.Event()
    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(250)
    done = execute(folder, CELLS[:4], Logged(log, 0), jobs=0)
    other.join()
    assert (done.n_computed, done.n_elsewhere) == ((3, 1) if finished else (4, 0))
    theirs = folder.rows(CELLS[:1]).column("quantity") == ["theirs"]
    assert theirs is finished
    assert (started(log)[-1] == ("a", 0)) is not finished


LOCKER = """
import sys, time
from pathlib import Path
from theodolite.runs.folder.atomic import try_lock
path, count = Path(sys.argv[1]), Path(sys.argv[2])
n = 0
while n < 200:
    with try_lock(path) as mine:
        if mine:
            value = int(count.read_text())
            count.write_text(str(value + 1))
            n += 1
"""


def test_a_lock_excludes_although_its_file_comes_and_goes(tmp_path):
    (tmp_path / "count").write_text("0")
    results = []
    threads = [
        threading.Thread(
            target=lambda: results.append(
                python(LOCKER, tmp_path / "lock", tmp_path / "count")
            )
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.stderr for result in results] == [""] * 3
    assert (tmp_path / "count").read_text() == "600"
    assert sys.platform == "win32" or not (tmp_path / "lock").exists()

import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from tests.runs import processes
from tests.runs.work import (
    CELLS,
    Deadly,
    Dying,
    Failing,
    Leaving,
    Logged,
    Stalled,
    cannot_initialise,
    environment,
    initialise,
    products,
    safe_path,
    spec,
    started,
)
from theodolite import core
from theodolite.core import ConfigError, Cost, RunError
from theodolite.runs import Pool, RunFolder, execute
from theodolite.runs.executors.pool import pickled

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@pytest.fixture(scope="module")
def pool():
    with Pool(2, initialise=initialise) as pool:
        yield pool


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path, spec(width=8))


class RecordedProgress:
    """Keep every call."""

    def __init__(self):
        self.events = []

    def start(self, total, done, label):
        self.events.append((total, done, label))

    def advance(self, cell, cost):
        assert isinstance(cost, Cost)
        self.events.append(cell)

    def finish(self):
        self.events.append("finish")


def test_in_process_equals_pool_bit_for_bit(tmp_path, pool):
    cells = CELLS[:4]
    before = {name: os.environ.get(name) for name in THREADS}
    here, there = (RunFolder.create(tmp_path / x, spec(width=8)) for x in "ab")
    execute(here, cells, products, jobs=0)
    execute(there, cells, products, pool=pool)
    assert here.rows() == there.rows()
    assert np.all(here.rows().where(quantity="threads").values() == 1)
    assert len(here.rows()) == 4 * 258
    assert before == {name: os.environ.get(name) for name in THREADS}
    assert there.cost().cpu_s > 0


def test_this_process_has_its_threads_back(folder):
    from threadpoolctl import threadpool_info

    before = threadpool_info()
    execute(folder, CELLS[:1], products, jobs=0)
    assert threadpool_info() == before


def test_workers_have_one_thread_and_are_initialised_and_shared(tmp_path, pool):
    pids = set()
    for name in "ab":
        folder = RunFolder.create(tmp_path / name, spec(width=8))
        execute(folder, CELLS, environment, pool=pool)
        rows = folder.rows()
        assert set(rows.where(quantity="omp").values()) == {1}
        assert set(rows.where(quantity="initialised").values()) == {1}
        pids |= set(rows.where(quantity="pid").values())
    assert len(pids) <= 2
    assert os.getpid() not in pids


def test_a_rerun_computes_nothing(tmp_path, folder, pool):
    log, progress = tmp_path / "log", RecordedProgress()
    first = execute(folder, CELLS[:7], Logged(log, 0), pool=pool, progress=progress)
    assert (first.n_done_before, first.n_computed, first.n_failed) == (0, 7, 0)
    assert first.wall_s > 0
    assert progress.events[0] == (7, 0, "paper2020word/figure")
    assert progress.events[-1] == "finish"
    assert len(progress.events) == 9
    cells = [{k: np.array(v)[()] for k, v in c.items()} for c in CELLS[:9]]
    second = execute(folder, cells + cells, Logged(log, 0), jobs=0)
    assert (second.n_done_before, second.n_computed) == (7, 2)
    assert sorted(started(log)) == sorted((c["kind"], c["trial"]) for c in CELLS[:9])
    assert [record["n_computed"] for record in folder.launches()] == [7, 2]
    assert [record["jobs"] for record in folder.launches()] == [2, 0]


@pytest.mark.parametrize("local", [True, False])
def test_a_cell_that_raises_does_not_stop_the_others(folder, pool, local):
    how = {"jobs": 0} if local else {"pool": pool}
    with pytest.raises(RunError) as caught:
        execute(folder, CELLS, Failing("b"), **how)
    message = str(caught.value)
    assert "10 of 30 cells failed" in message
    assert "ValueError: kind b is not to be had" in message
    assert "20 finished cells are saved" in message
    record = folder.launches()[0]
    assert record["outcome"].startswith("failed: 10 of 30")
    assert "raise ValueError" in record["failures"]["kind=b, trial=0"]["trace"]
    done = execute(folder, CELLS, Failing("none"), jobs=0)
    assert (done.n_done_before, done.n_computed) == (20, 10)


def test_failures_are_returned_where_asked(folder):
    done = execute(folder, CELLS[8:12], Failing("b"), jobs=0, strict=False)
    assert done.n_failed == 2
    assert done.failures["kind=b, trial=1"] == "ValueError: kind b is not to be had"


def test_rows_that_cannot_be_saved_fail_their_cell_only(folder):
    def work(cell):
        return [{"quantity": "x", "value": object() if cell["trial"] == 1 else 0.5}]

    with pytest.raises(RunError, match=r"1 of 3 cells .* 2 finished"):
        execute(folder, CELLS[:3], work, jobs=0)


def test_a_worker_that_dies_once_costs_nothing(tmp_path, folder, pool):
    done = execute(folder, CELLS[:8], Dying(tmp_path / "mark", always=False), pool=pool)
    assert (tmp_path / "mark").exists()
    assert done.n_computed == 8
    assert folder.rows(CELLS[:8]).column("value") == list(range(8))


def test_a_cell_that_kills_twice_fails_and_the_others_finish(tmp_path, folder, pool):
    with pytest.raises(RunError) as caught:
        execute(folder, CELLS[:8], Dying(tmp_path / "mark", always=True), pool=pool)
    message = str(caught.value)
    assert "1 of 8 cells failed" in message
    assert "trial=3" in message
    assert "was killed by SIGKILL" in message
    assert folder.pending(CELLS[:8]) == [CELLS[3]]
    assert (tmp_path / "mark").read_text() == "killed\n" * 2


def test_cells_that_kill_their_workers_stop_the_run_after_three(tmp_path, folder):
    mark = tmp_path / "mark"
    with Pool(1) as one, pytest.raises(RunError) as caught:
        execute(folder, CELLS[:10], Deadly(mark, first=2), pool=one)
    message = str(caught.value)
    assert (
        "3 cells in a row killed their workers, the last (kind=a, trial=4)" in message
    )
    assert "SIGKILL" in message
    assert "a rerun resumes" in message
    assert "\n" not in message
    assert mark.read_text() == "killed\n" * 6
    assert len(folder.pending(CELLS[:10])) == 8
    done = execute(folder, CELLS[:10], Deadly(mark, first=99), jobs=0)
    assert (done.n_done_before, done.n_computed) == (2, 8)


@pytest.mark.parametrize("code", [0, None, 3, "over"])
def test_a_cell_that_calls_exit_fails_and_the_others_finish(folder, code):
    with pytest.raises(RunError, match=r"1 of 3 cells failed .* 2 finished") as caught:
        execute(folder, CELLS[:3], Leaving(code), jobs=0)
    assert f"it called sys.exit({code!r})" in str(caught.value)
    assert folder.pending(CELLS[:3]) == [CELLS[1]]


def test_workers_import_nothing_from_the_working_directory(
    tmp_path, folder, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "multiprocessing.py").write_text("open('ran', 'w').close()\n")
    with Pool(1) as one:
        execute(folder, CELLS[:1], safe_path, pool=one)
    assert not (tmp_path / "ran").exists()
    assert folder.rows(CELLS[:1]).column("value") == [0.0]


@pytest.fixture
def interruptible():
    """Heed interrupts, which a shell makes its background jobs ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def interrupting(condition):
    """Interrupt this process when something has come true, however long it takes."""

    def interrupt():
        processes.until(condition)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    yield
    watcher.join()


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("local", [True, False])
def test_an_interrupt_keeps_what_is_finished(tmp_path, folder, pool, local):
    log = tmp_path / "log"
    how = {"jobs": 0} if local else {"pool": pool}
    progress = RecordedProgress()
    with interrupting(lambda: len(started(log)) > 3), pytest.raises(KeyboardInterrupt):
        execute(folder, CELLS, Logged(log, 0.3), progress=progress, **how)
    assert progress.events[-1] == "finish"
    assert folder.launches()[0]["outcome"] == "interrupted"
    left = folder.pending(CELLS)
    assert left
    assert folder.launches()[0]["n_computed"] <= 30 - len(left)
    assert len(started(log)) - (30 - len(left)) <= 2
    assert not list((folder.path / "cells").glob(".*"))
    n_before = 12 - len(folder.pending(CELLS[:12]))
    done = execute(folder, CELLS[:12], Logged(log, 0), **how)
    assert (done.n_done_before, done.n_computed) == (n_before, 12 - n_before)
    assert done.n_elsewhere == 0, "a worker went on after the interrupt"
    assert not folder.pending(CELLS[:12])


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_a_cell_is_written_leaves_no_part_of_it(folder, pool):
    cells = folder.path / "cells"
    writing = interrupting(lambda: list(cells.glob(".*.part")))
    with writing, pytest.raises(KeyboardInterrupt):
        execute(folder, CELLS[:2], Stalled(), pool=pool)
    assert not list(cells.glob(".*"))
    assert not list((folder.path / "locks").glob("*"))
    assert folder.pending(CELLS[:2]) == CELLS[:2]


def test_workers_that_cannot_start_say_why(folder):
    with pytest.raises(RunError, match="initialise raised RuntimeError: no such dev"):
        execute(folder, CELLS[:2], environment, jobs=1, initialise=cannot_initialise)


def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from tests.runs.work import CELLS, environment, spec\n"
        "from theodolite.runs import RunFolder, execute\n"
        f"folder = RunFolder.create({str(tmp_path)!r}, spec(width=8))\n"
        "execute(folder, CELLS, environment, jobs=1)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env=processes.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "RunError: worker processes cannot start" in last
    assert 'guard the script with if __name__ == "__main__"' in last


def test_what_workers_cannot_have_is_refused(folder, pool):
    with pytest.raises(RunError, match=r"work function cannot be sent .* jobs=0"):
        execute(folder, CELLS[:2], lambda cell: [], pool=pool)
    with pytest.raises(RunError, match="initialise function cannot be sent"):
        Pool(1, initialise=lambda: None)
    with pytest.raises(ConfigError, match="its own jobs"):
        execute(folder, CELLS[:2], environment, pool=pool, jobs=1)
    with pytest.raises(ConfigError, match="a pool of -1 workers"):
        execute(folder, CELLS[:2], environment, jobs=-1)


def test_nothing_pending_starts_no_worker(folder):
    with Pool(2) as idle:
        done = execute(folder, [], environment, pool=idle)
        assert done.n_computed == 0
        assert idle._workers == []


def test_public_functions_can_be_sent_to_workers():
    sent = pickle.loads(pickled(partial(core.stream, 3), "work function"))
    assert sent("a").integers(10**9) == core.stream(3, "a").integers(10**9)

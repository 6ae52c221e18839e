"""Killed at random moments, a run resumes and ends as if nothing had been."""

import os
import random
import signal
import sys
import time
from collections import Counter

import pytest

from tests.runs.processes import launch, running, until
from tests.runs.work import CELLS, Logged, spec, started
from theodolite.runs import RunFolder, execute

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="reads /proc to see processes end"
)
JOBS = 2


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("whole")
    folder = RunFolder.create(tmp_path, spec(width=8))
    execute(folder, CELLS, Logged(tmp_path / "log", 0), jobs=0)
    return folder.rows()


def finished(folder):
    left = {(c["kind"], c["trial"]) for c in folder.pending(CELLS)}
    return {(c["kind"], c["trial"]) for c in CELLS} - left


@pytest.mark.parametrize(("seed", "whole_group"), [(0, True), (1, False)])
def test_killed_and_resumed_equals_uninterrupted(
    tmp_path, uninterrupted, seed, whole_group
):
    rng = random.Random(seed)
    log = tmp_path / "log"
    folder = RunFolder.create(tmp_path, spec(width=8))
    for _ in range(3):
        done, n_started = finished(folder), len(started(log))
        last = n_started + 6
        process = launch(tmp_path, log, jobs=JOBS, longest_s=0.3, last=last)
        # From the first cell of this launch on, so that most kills hit work.
        until(lambda n=n_started: len(started(log)) > n)
        time.sleep(rng.uniform(0, 0.3))
        assert process.poll() is None
        workers = children(process.pid)
        kill = os.killpg if whole_group else os.kill
        kill(process.pid, signal.SIGKILL)
        process.communicate()
        until(lambda workers=workers: not any(map(running, workers)))
        after = finished(folder)
        begun = Counter(started(log)[n_started:])
        assert not done & begun.keys(), "a finished cell was computed again"
        assert done <= after, "a finished cell was lost"
        assert max(begun.values()) == 1
        assert len(begun) - len(after - done) <= JOBS, "more than in flight was lost"
    n_started, left = len(started(log)), folder.pending(CELLS)
    out, err = launch(tmp_path, log, jobs=JOBS).communicate(timeout=250)
    assert out.split() == [str(30 - len(left)), str(len(left)), "0"], err
    assert len(started(log)) == n_started + len(left)
    assert folder.rows() == uninterrupted
    assert list(folder.path.rglob("*.part")) == []
    assert not list((folder.path / "locks").iterdir())
    outcomes = [record["outcome"] for record in folder.launches()]
    assert outcomes.count("finished") == len(outcomes) - 3 == 1


def test_workers_end_with_their_parent(tmp_path):
    log = tmp_path / "log"
    process = launch(tmp_path, log, jobs=JOBS, longest_s=500)
    until(lambda: len(started(log)) == JOBS)
    workers = children(process.pid)
    assert len(workers) >= JOBS
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    until(lambda: not any(map(running, workers)))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]

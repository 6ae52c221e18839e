"""The folder of a grid: what is done is kept, what is another grid is refused."""

import multiprocessing
import os
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch

from tests.training.grid_cases import LINEAR, samples
from theodolite.core import RunError, ShortcutBlueprint
from theodolite.runs import RunFolder
from theodolite.training import Probe, train_grid
from theodolite.training.grid import pieces


@pytest.fixture
def data():
    return samples()


def scaled(snapshot, k=1):
    return float(k)


class Scaled:
    def __init__(self, k):
        self.k, self.lock = k, object()

    def __call__(self, snapshot):
        return float(self.k)

    def measure(self, snapshot):
        return float(self.k)


def closed_over(k):
    return lambda snapshot: float(k)


def defaulted(k):
    def measure(snapshot, k=k):
        return float(k)

    return measure


@pytest.mark.parametrize(
    "make",
    [
        lambda k: partial(scaled, k=k),
        lambda k: partial(partial(scaled), k=k),
        lambda k: partial(lambda k, at: float(k.sum()), np.full(2, k / 2)),
        lambda k: partial(lambda k, at: float(k), torch.tensor(k)),
        lambda k: closed_over(k),
        lambda k: closed_over(np.float64(k)),
        lambda k: partial(closed_over(k)),
        lambda k: defaulted(k),
        lambda k: Scaled(k),
        lambda k: Scaled(k).measure,
        lambda k: (lambda at: 1.0) if k == 1 else (lambda at: 2.0),
    ],
)
def test_a_grid_is_not_resumed_with_another_probe(data, tmp_path, make):
    def values(k):
        grid = train_grid(
            LINEAR, data, {"lr": [0.1]}, steps=2, folder=tmp_path,
            probes=[Probe("p", make(k))],
        )  # fmt: skip
        return set(grid.probed("p").values())

    assert values(1) == {1.0}
    assert values(1) == {1.0}
    with pytest.raises(RunError, match=r"other settings .*probes"):
        values(2)


IDENTITY = """
import numpy as np
from functools import partial
from theodolite.training.grid.probe_digest import probe_digest
class Thing:
    __slots__ = ()
class Holder:
    def __init__(self):
        self.thing, self.names, self.me = Thing(), {"a", "b", "c"}, self
    def __call__(self, at):
        return 1.0
def outer(n):
    def again(at, m=Thing()):
        return again if at in {"x", "y", "z"} else (lambda: n)
    return again
for measure in (Holder(), outer(3), partial(outer(3), k=[np.ones(2), Holder()]), sum,
                Holder().__call__):
    print(probe_digest(measure))
"""


def test_a_probe_is_known_in_every_process():
    def said(seed):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", IDENTITY]
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout.splitlines()

    first = said("1")
    assert len(set(first)) == 5
    assert said("2") == first


def test_without_a_folder_a_failed_piece_is_one_sentence(data, monkeypatch):
    def fail(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(pieces, "_train_stacked", fail)
    with pytest.raises(RunError, match=r"1 of 1 pieces .*no room.*pass a folder"):
        train_grid(LINEAR, data, {"lr": [0.1]}, steps=5)


def test_a_grid_cut_into_other_pieces_is_not_resumed(data, tmp_path, monkeypatch):
    axes = {"seed": [0, 1, 2], "lr": [0.1]}
    train_grid(LINEAR, data, axes, steps=5, folder=tmp_path)
    monkeypatch.setattr(pieces, "_LARGEST", 2)
    with pytest.raises(RunError, match="pieces"):
        train_grid(LINEAR, data, axes, steps=5, folder=tmp_path)


def losses(folder=None):
    x, y = np.random.default_rng(0).normal(size=(2, 100, 6))
    plan = ShortcutBlueprint(width=6, depth=4, mid="tanh")
    axes = {"seed": range(9), "lr": [0.01]}
    return train_grid(plan, (x, y), axes, steps=16, folder=folder, jobs=0).final_loss


def killed(folder):
    """End this process as soon as the first of several pieces is saved."""
    save = RunFolder.save

    def save_and_die(*given):
        save(*given)
        os.kill(os.getpid(), signal.SIGKILL)

    RunFolder.save = save_and_die
    losses(folder)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fork
def test_a_killed_grid_resumes_and_redoes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "_SECONDS", 0.02)
    fresh = losses()
    child = multiprocessing.get_context("fork").Process(target=killed, args=[tmp_path])
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    saved = {p: p.stat().st_mtime_ns for p in tmp_path.glob("runs/*/*/*/cells/*.jsonl")}
    assert len(saved) == 1
    np.testing.assert_array_equal(losses(tmp_path), fresh)
    for path, when in saved.items():
        assert path.stat().st_mtime_ns == when
    assert len(list(tmp_path.glob("runs/*/*/*/cells/*.jsonl"))) > 1


def test_a_folder_keeps_one_grid(data, tmp_path):
    axes = {"seed": [0, 1], "lr": [0.1]}
    first = train_grid(LINEAR, data, axes, steps=20, folder=tmp_path)
    again = train_grid(LINEAR, data, axes, steps=20, folder=tmp_path)
    np.testing.assert_array_equal(first.final_loss, again.final_loss)
    with pytest.raises(RunError, match=r"other settings \(steps 20, not 30\)"):
        train_grid(LINEAR, data, axes, steps=30, folder=tmp_path)
    with pytest.raises(RunError, match="data"):
        train_grid(LINEAR, (data[0], 2 * data[1]), axes, steps=20, folder=tmp_path)
    kept = train_grid(LINEAR, data, axes, steps=20, folder=tmp_path)
    np.testing.assert_array_equal(first.final_loss, kept.final_loss)

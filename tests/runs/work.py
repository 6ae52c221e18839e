"""Work that spawned processes can import, and cells for it."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from theodolite.core import derive
from theodolite.runs import RunSpec

CELLS = [
    {"kind": kind, "trial": trial} for kind in ("a", "b", "c") for trial in range(10)
]


def spec(**config):
    return RunSpec(paper="paper2020word", study="figure", scale="smoke", config=config)


def log_start(log, cell):
    """Append one line; short appends by several processes do not mix."""
    with open(log, "a") as file:
        file.write(f"{cell['kind']} {cell['trial']}\n")


def started(log):
    """Return the cells whose computation was begun, as often as it was."""
    lines = Path(log).read_text().splitlines() if Path(log).exists() else []
    return [(kind, int(trial)) for kind, trial in (line.split() for line in lines)]


class Logged:
    """Draw numbers that only the cell determines, slowly, and log the start.

    Cells that start after the ``last`` line of the log do not end: they are there to be
    killed, however late the kill may come.
    """

    def __init__(self, log, longest_s=0.05, last=float("inf")):
        self.log = str(log)
        self.longest_s, self.last = longest_s, last

    def __call__(self, cell):
        log_start(self.log, cell)
        if self.last < float("inf") and len(started(self.log)) > self.last:
            time.sleep(600)
        generator = np.random.default_rng(derive(0, cell["kind"], cell["trial"]))
        time.sleep(self.longest_s * generator.random())
        for layer in range(5):
            yield {"quantity": "x", "layer": layer, "value": generator.normal()}


class Stalled:
    """Stall the worker that saves the cell while its file is half written."""

    def __call__(self, cell):
        os.fsync = lambda handle: time.sleep(60)
        return [{"quantity": "x", "value": 1.0}]


class Failing:
    """Fail on the cells of one kind."""

    def __init__(self, kind):
        self.kind = kind

    def __call__(self, cell):
        if cell["kind"] == self.kind:
            raise ValueError(f"kind {self.kind} is not to be had")
        return [{"quantity": "x", "value": 1.0}]


class Dying:
    """Kill the worker on one cell, the first time only or always."""

    def __init__(self, mark, *, always):
        self.mark = str(mark)
        self.always = always

    def __call__(self, cell):
        if cell["trial"] == 3 and (self.always or not os.path.exists(self.mark)):
            with open(self.mark, "a") as file:
                file.write("killed\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return [{"quantity": "x", "value": float(cell["trial"])}]


class Deadly:
    """Kill the worker on every cell from a trial on, and leave a mark each time."""

    def __init__(self, mark, first):
        self.mark, self.first = str(mark), first

    def __call__(self, cell):
        if cell["trial"] >= self.first:
            with open(self.mark, "a") as file:
                file.write("killed\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return [{"quantity": "x", "value": float(cell["trial"])}]


class Leaving:
    """Call sys.exit in one cell."""

    def __init__(self, code):
        self.code = code

    def __call__(self, cell):
        if cell["trial"] == 1:
            sys.exit(self.code)
        return [{"quantity": "x", "value": 1.0}]


def products(cell):
    """Sums long enough for BLAS to share among threads, and its thread counts."""
    from threadpoolctl import threadpool_info

    generator = np.random.default_rng(derive(0, cell["kind"], cell["trial"]))
    matrix = generator.normal(size=(257, 257))
    values = np.linalg.eigvalsh(matrix @ matrix.T)
    threads = max(library["num_threads"] for library in threadpool_info())
    yield {"quantity": "threads", "value": threads}
    for rank, value in enumerate(values):
        yield {"quantity": "eigenvalue", "rank": rank, "value": value}


def environment(cell):
    yield {"quantity": "omp", "value": int(os.environ["OMP_NUM_THREADS"])}
    yield {"quantity": "initialised", "value": float("initialised" in sys.modules)}
    yield {"quantity": "pid", "value": os.getpid()}


def safe_path(cell):
    # What a cell starts finds its own files, as ever.
    yield {"quantity": "set", "value": float("PYTHONSAFEPATH" in os.environ)}


def initialise():
    sys.modules["initialised"] = sys


def cannot_initialise():
    raise RuntimeError("no such device")


def broad(cell):
    """Rows too large for a small disk."""
    return [{"quantity": "x", "value": 0.1, "text": "x" * 20_000}]

"""Checks that need a real Ray cluster, run by a process that may die of it.

Ray ends a process whose head node is lost. So the checks of a file run in a child with
a time limit; each writes its outcome when it is done. What was under way when the child
died fails with the child's log, and the rest goes to a new child.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.runs.processes import ROOT, environment

# All checks of a file together, on a machine under load.
LIMIT_S = 1500
_MARK = "THEODOLITE_RAY_CHECKS"


def outcomes(file, names, *, limit_s=LIMIT_S, options=()):
    """Run some checks of a file; return what went wrong in each, "" for nothing."""
    end, done = time.monotonic() + limit_s, {}
    while left := [name for name in names if name not in done]:
        with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as place:
            log = _child(file, left, place, max(1, end - time.monotonic()), options)
            done |= _written(Path(place, "outcomes"))
        if left := [name for name in left if name not in done]:
            done[left[0]] = f"the child ended in this check:\n{log}"
        if time.monotonic() > end:
            done |= dict.fromkeys(left[1:], f"not run: {limit_s} s had passed")
    return done


def _child(file, names, place, seconds, options):
    """Run the checks until the child ends or is ended; return the end of its log."""
    mark = secrets.token_hex(8)
    # The folder is short, as the names of sockets must be. Without SPT_NOENV workers
    # write their titles over their environment.
    ray = {"RAY_TMPDIR": place, "RAY_USAGE_STATS_ENABLED": "0"}
    marked = {"SPT_NOENV": "1", _MARK: mark}
    with Path(place, "log").open("wb") as log:
        child = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.runs.ray_child",
                place,
                file,
                *names,
                *options,
            ],
            cwd=ROOT,
            env=environment() | ray | marked,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
        ended = f"exit status {child.poll()} after at most {seconds:.0f} s"
        end_marked(mark)
        child.wait()
    return "\n".join([_tail(Path(place, "log"), 20_000), ended, *_logs_of_nodes(place)])


def _tail(path, length):
    return path.read_bytes()[-length:].decode(errors="replace")


def _logs_of_nodes(place):
    """Say how the last head node and its raylets ended."""
    logs = sorted(Path(place).glob("ray/session_2*/logs/*"))
    kinds = ("gcs_server", "raylet")
    chosen = [path for path in logs if path.name.startswith(kinds)]
    return [f"{path.name}: {_tail(path, 2000)}" for path in chosen]


def end_marked(mark):
    """End all that a child started and left, and the child; return how many."""
    wanted, ended = f"{_MARK}={mark}".encode(), set()
    while pids := [pid for pid in _processes() if wanted in _environment_of(pid)]:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended.update(pids)
        time.sleep(0.01)
    return len(ended)


def _processes():
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _environment_of(pid):
    """Return the environment of a process; a zombie and a stranger have none."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _written(path):
    lines = path.read_text().splitlines() if path.exists() else []
    texts = {}
    for name, text in map(json.loads, lines):
        texts[name] = "\n".join(filter(None, [texts.get(name), text]))
    return texts


class Outcomes:
    """Writes what went wrong in a check when it is torn down."""

    def __init__(self, path):
        self.path, self.texts = path, []

    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed":
            self.texts.append(f"{report.when}: {report.longreprtext}")
        if report.when == "teardown":
            name = report.nodeid.rpartition("::")[2].partition("[")[0]
            with open(self.path, "a") as file:
                file.write(json.dumps([name, "\n".join(self.texts)]) + "\n")
            self.texts = []


def main(place, file, *names):
    """Run checks by name, with options of pytest among the names."""
    options = [name for name in names if name.startswith("-")]
    chosen = [f"{file}::{name}" for name in names if name not in options]
    fixed = [
        "-m",
        "",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-s",
        "--timeout=600",
    ]
    base = f"--basetemp={place}/tests"
    plugins = [Outcomes(f"{place}/outcomes")]
    return pytest.main([*chosen, *fixed, base, *options], plugins=plugins)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

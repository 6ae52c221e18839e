"""Peak memory of one computation, as the kernel counts it for one program.

``ru_maxrss`` survives the start of a program: a child begins at the peak of whoever
started it, so that whatever takes less seems to take nothing. ``VmHWM`` does not.

Every case runs in a process of its own, forked from one that has imported the module of
the cases and done nothing else: importing is paid for once.
"""

import atexit
import os
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from bench.progress import say

_STATUS = Path("/proc/self/status")
_STARTED: list[Any] = []


@cache
def rise_mib(module: str, case: str) -> float | None:
    """Return by how many MiB a case raises the peak of a fresh process.

    Args:
        module: A module with ``CASES``, functions by name. Each prepares and returns
            the function to measure; what preparing takes does not count.
        case: Name of the case.

    Returns:
        The rise, or None where the case fails or the system does not tell.
    """
    say(f"peak memory of {case}")
    started = _started(module)
    try:
        started.stdin.write(case + "\n")
        started.stdin.flush()
        told = started.stdout.readline().strip()
    except OSError:
        return None
    return float(told) if told else None


@cache
def _started(module: str) -> Any:
    code = f"from bench.peak_memory import serve; serve({module!r})"
    made = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    _STARTED.append(made)
    return made


@atexit.register
def finish() -> None:
    """End what was started, so that its time counts as that of a child."""
    while _STARTED:
        _STARTED[-1].kill()
        _STARTED.pop().communicate()


def serve(module: str) -> None:
    """Import a module, then measure the cases that are asked for, each in a fork."""
    torch.set_num_threads(1)
    cases = import_module(module).CASES
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a case prints is no answer
    for line in sys.stdin:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _measure(cases[line.rstrip("\n")], writer)
        os.close(writer)
        with os.fdopen(reader) as told:
            answers.write(told.read() + "\n")
        os.waitpid(child, 0)
        answers.flush()


def _measure(prepare: Any, writer: int) -> None:
    """Run one case, write the rise, and end; called in the fork."""
    try:
        measured = prepare()
        # Forget the peak of preparing; memory it freed but kept can still be used
        # again, so that the rise is a lower bound.
        forget_peak()
        before = peak_mib()
        measured()
        os.write(writer, str(peak_mib() - before).encode())
    finally:
        os._exit(0)


def both(module: str, theirs: str, ours: str) -> str:
    """Return the rises of a peer and of ours, as "peer : ours"."""
    rises = [rise_mib(module, case) for case in (theirs, ours)]
    return " : ".join("—" if r is None else f"{r:.0f}" for r in rises) + " MiB"


def forget_peak() -> None:
    """Start the peak anew from what the process holds now."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    """Return the most that the process has held, in MiB."""
    (line,) = [x for x in _STATUS.read_text().splitlines() if x.startswith("VmHWM")]
    return int(line.split()[1]) / 1024

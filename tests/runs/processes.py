"""Start launchers and drivers as processes of their own, and watch them end."""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


def environment():
    path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))}


def module(name, *arguments, **how):
    """Start a module in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", name, *map(str, arguments)],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def launch(root, log, *, jobs, longest_s=0.05, last=float("inf")):
    """Start the launcher in a process group of its own."""
    arguments = (root, log, jobs, longest_s, last)
    return module("tests.runs.launcher", *arguments, start_new_session=True)


def drive(root, log, address, *, longest_s=0.05, last=float("inf")):
    """Start a driver of the Ray cluster at an address."""
    return module("tests.runs.ray_work", root, log, address, longest_s, last)


def ran(*arguments):
    """Run a fresh interpreter with arguments and return what it did."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def python(code, *arguments):
    """Run a snippet in a fresh interpreter and return what it did."""
    return ran("-W", "error", "-c", code, *arguments)


def running(pid):
    """Say whether a process is alive; a zombie is not."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(condition, seconds=250.0):
    """Wait for something to come true; the time is for machines under load."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)

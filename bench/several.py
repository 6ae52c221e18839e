"""Suites side by side, each in a process of its own, as many as there are cores."""

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def run_several(names: list[str], results: Path) -> list[str]:
    """Run suites, those that took longest last time first; return those that failed.

    Lines come as they are printed, with the suite that printed them in front.
    """
    jobs = int(os.environ.get("BENCH_JOBS", 0)) or len(os.sched_getaffinity(0))
    order = sorted(names, key=lambda name: -_last_cost(results / f"{name}.json"))
    print(f"{len(order)} suites, {jobs} at a time: {', '.join(order)}", flush=True)
    start, waiting, lock = time.monotonic(), list(order), threading.Lock()

    def one(name: str) -> str | None:
        with lock:
            waiting.remove(name)
            after = f"; next: {waiting[0]}" if waiting else ""
            print(f"[{name}] starts{after}", flush=True)
        return None if _run(name) == 0 else name

    with ThreadPoolExecutor(jobs) as pool:
        failed = [name for name in pool.map(one, order) if name is not None]
    print(f"\nall suites in {time.monotonic() - start:.0f} s", flush=True)
    return failed


def _run(name: str) -> int:
    """Run one suite as ``python -m bench`` does and pass its lines on."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench", name],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.strip():
                print(f"[{name}] {line.rstrip()}", flush=True)
    return running.returncode


def _last_cost(path: Path) -> float:
    """Return the processor seconds of the last run; unknown ones come first."""
    if not path.exists():
        return float("inf")
    return json.loads(path.read_text()).get("processor_seconds", float("inf"))

"""Peak memory of one computation, as the kernel counts it for one program.

``ru_maxrss`` survives the start of a program: a child begins at the peak of whoever
started it, so that whatever takes less seems to take nothing. ``VmHWM`` does not.
"""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import torch

_STATUS = Path("/proc/self/status")


def rise_mib(module: str, case: str) -> float | None:
    """Return by how many MiB a case raises the peak of a fresh process.

    Args:
        module: A module with ``CASES``, functions by name. Each prepares and returns
            the function to measure; what preparing takes does not count.
        case: Name of the case.

    Returns:
        The rise, or None where the case fails or the system does not tell.
    """
    code = f"from bench.high_water import child; child({module!r}, {case!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = done.stdout.split()
    return float(lines[-1]) if done.returncode == 0 and lines else None


def child(module: str, case: str) -> None:
    """Run one case and print the rise; called in the fresh process."""
    torch.set_num_threads(1)
    measured = import_module(module).CASES[case]()
    # Forget the peak of preparing; memory it freed but kept can still be used again,
    # so that the rise is a lower bound.
    forget_peak()
    before = peak_mib()
    measured()
    print(peak_mib() - before)


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

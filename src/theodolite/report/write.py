"""The report as a file: whole or not at all."""

import os
import tempfile
from pathlib import Path

from theodolite.core import RunError
from theodolite.report.collect import judged_runs
from theodolite.report.page import render


def write_report(root: Path | str, destination: Path | str | None = None) -> Path:
    """Write one self-contained HTML file on the latest run of every study.

    Args:
        root: Folder that holds ``runs/``.
        destination: File to write, ``report.html`` in ``root`` by default.

    Returns:
        The file written.

    Raises:
        TheodoliteError: Where no run is finished, or one cannot be read.
    """
    target = Path(root) / "report.html" if destination is None else Path(destination)
    return write_text(target, render(judged_runs(root)))


def write_text(target: Path, text: str) -> Path:
    """Write a file whole or not at all, and return it.

    Raises:
        RunError: Where it cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, text)
    except OSError as wrong:
        raise RunError(
            f"cannot write {target} ({wrong.strerror}): pass another destination"
        ) from wrong
    return target


def _replace(target: Path, text: str) -> None:
    """Write beside the target, then rename over it."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        # A temporary file is private to its owner; a report is for reading.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

"""The report as a file: whole or not at all."""

from pathlib import Path

from theodolite.core import RunError
from theodolite.report.collect import Told, judged_runs
from theodolite.report.page import render
from theodolite.runs import replace_file


def write_report(
    root: Path | str,
    destination: Path | str | None = None,
    *,
    damaged: Told = lambda damage: None,
) -> Path:
    """Write one self-contained HTML file on the latest run of every study.

    Args:
        root: Folder that holds ``runs/``.
        destination: File to write, ``report.html`` in ``root`` by default.
        damaged: Told of every file of a run that is left out because it is damaged.

    Returns:
        The file written.

    Raises:
        TheodoliteError: Where no run is finished, or none can be read.
    """
    target = Path(root) / "report.html" if destination is None else Path(destination)
    return write_text(target, render(judged_runs(root, damaged=damaged)))


def write_text(target: Path, text: str) -> Path:
    """Write a file whole or not at all, and return it.

    Raises:
        RunError: Where it cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, text.encode("utf-8", "replace"))
    except (OSError, ValueError) as wrong:
        reason = getattr(wrong, "strerror", None) or wrong
        raise RunError(
            f"cannot write {target} ({reason}): pass another destination"
        ) from wrong
    return target

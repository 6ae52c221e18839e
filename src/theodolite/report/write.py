"""The report as a file: whole or not at all."""

from pathlib import Path

from theodolite.report.collect import Told, judged_runs
from theodolite.report.page import render
from theodolite.runs import write_text


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

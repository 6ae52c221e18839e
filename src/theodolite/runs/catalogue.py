"""Find the run folders under a root."""

from pathlib import Path

from theodolite.core import RunError
from theodolite.runs.folder import RunFolder


def runs_in(root: Path | str) -> list[RunFolder]:
    """Return every readable run folder under ``root``, newest first."""
    found = []
    for file in (Path(root) / "runs").glob("*/*/*/run.json"):
        try:
            found.append(RunFolder.open(file.parent))
        except RunError:
            continue
    return sorted(
        found,
        key=lambda folder: (str(folder.info.get("created", "")), str(folder.path)),
        reverse=True,
    )


def latest(root: Path | str, *, paper: str, study: str) -> RunFolder | None:
    """Return the run of a study that was summed up last, None if none was."""
    summed_up = [
        (summary.stat().st_mtime_ns, folder)
        for folder in runs_in(root)
        if (folder.spec.paper, folder.spec.study) == (paper, study)
        and (summary := folder.path / "summary.json").is_file()
    ]
    return max(summed_up, key=lambda pair: pair[0])[1] if summed_up else None

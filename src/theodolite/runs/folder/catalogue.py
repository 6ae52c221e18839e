"""Find the run folders under a root."""

import json
from pathlib import Path

from theodolite.core import RunError
from theodolite.runs.folder.folder import RunFolder


def runs_in(root: Path | str) -> list[RunFolder]:
    """Return every readable run folder under ``root``, newest first."""
    folders = []
    for file in (Path(root) / "runs").glob("*/*/*/run.json"):
        try:
            folders.append(RunFolder.open(file.parent))
        except RunError:
            continue
    return sorted(
        folders,
        key=lambda folder: (str(folder.info.get("created", "")), str(folder.path)),
        reverse=True,
    )


def latest(root: Path | str, *, paper: str, study: str) -> RunFolder | None:
    """Return the run of a study that was judged last, None if none was.

    The time is the one that its summary states, so that copies and touched files do
    not change which run is the last.
    """
    summed_up = [
        (_judged(folder), folder)
        for folder in runs_in(root)
        if (folder.spec.paper, folder.spec.study) == (paper, study)
        and (folder.path / "summary.json").is_file()
    ]
    return max(summed_up, key=lambda pair: pair[0])[1] if summed_up else None


def _judged(folder: RunFolder) -> str:
    """Return the stated time of a summary; a damaged one counts as the newest.

    Whoever reads it then says what is wrong with it.
    """
    try:
        return str(json.loads(folder.read("summary.json") or "")["judged"])
    except (ValueError, KeyError, TypeError):
        return "~"

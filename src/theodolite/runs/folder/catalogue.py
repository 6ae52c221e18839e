"""Find the run folders under a root, and the summaries of those that were judged."""

from collections.abc import Iterable
from pathlib import Path

from theodolite.core import RunError, Summary, judged_when, parse_summary
from theodolite.runs.folder.folder import RunFolder

SUMMARY = "summary.json"


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
    """Return the run of a study that was judged last, None if none was."""
    return _latest(runs_in(root)).get((paper, study))


def latest_runs(root: Path | str) -> list[RunFolder]:
    """Return the run of each study that was judged last, by paper and study."""
    found = _latest(runs_in(root))
    return [found[key] for key in sorted(found)]


def read_summary(folder: RunFolder) -> Summary | None:
    """Read the summary of a run; None where it was not judged.

    Raises:
        RunError: Where the file is damaged, or of another version.
    """
    text = folder.read(SUMMARY)
    if text is None:
        return None
    return parse_summary(text, source=str(folder.path / SUMMARY))


def write_summary(folder: RunFolder, summary: Summary) -> None:
    """Keep the summary of a run in its folder."""
    folder.write(SUMMARY, summary.to_text())


def _latest(folders: Iterable[RunFolder]) -> dict[tuple[str, str], RunFolder]:
    """Return the judged run of each study with the latest time.

    The time is the one that its summary states, so that copies and touched files do
    not change which run is the last. A summary that states none counts as the newest:
    whoever reads it then says what is wrong with it.
    """
    newest: dict[tuple[str, str], tuple[str, RunFolder]] = {}
    for folder in folders:
        text = folder.read(SUMMARY)
        if text is None:
            continue
        when, key = judged_when(text) or "~", (folder.spec.paper, folder.spec.study)
        if key not in newest or when > newest[key][0]:
            newest[key] = when, folder
    return {key: folder for key, (_, folder) in newest.items()}

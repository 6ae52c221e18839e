"""Find the run folders under a root, and the summaries of those that were judged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from theodolite.core import RunError, Summary, SummaryError, parse_summary

from .atomic import refusing
from .checked import Damage, DamagedError
from .folder import RunFolder

SUMMARY = "summary.json"
Judged = tuple[RunFolder, Summary]


@dataclass(frozen=True)
class Results:
    """The runs under a root, each file of them read once.

    Attributes:
        folders: Every run that can be read, newest first.
        judged: The run of each study that was judged last, by paper and study; times
            are those that summaries state, so that copies and touched files do not
            change which run is the last.
        damages: Files that cannot be read; they are skipped.
    """

    folders: tuple[RunFolder, ...]
    judged: Mapping[tuple[str, str], Judged] = field(default_factory=dict)
    damages: tuple[Damage, ...] = ()

    def last(self, paper: str, study: str) -> Judged | None:
        """Return the last judged run of a study, None if none was judged.

        Raises:
            DamagedError: One was, and cannot be read.
        """
        last = self.judged.get((paper, study))
        if last is None:
            for damage in self.damages:
                if damage.folder.parts[-3:-1] == (paper, study):
                    raise DamagedError(damage)
        return last


def results_in(
    root: Path | str, *, paper: str | None = None, study: str | None = None
) -> Results:
    """Read the runs under a root: all of them, or those of one paper or study."""
    folders: list[RunFolder] = []
    damages: list[Damage] = []
    judged: dict[tuple[str, str], Judged] = {}
    for path in _places(Path(root), paper, study):
        try:
            folders.append(folder := RunFolder.open(path))
            summary = read_summary(folder)
        except DamagedError as error:
            damages.append(error.damage)
            continue
        key = (folder.spec.paper, folder.spec.study)
        if summary and (key not in judged or summary.judged > judged[key][1].judged):
            judged[key] = folder, summary
    folders.sort(key=_created, reverse=True)
    return Results(tuple(folders), judged, tuple(damages))


def runs_in(root: Path | str) -> list[RunFolder]:
    """Return every readable run folder under ``root``, newest first."""
    folders = []
    for path in _places(Path(root)):
        try:
            folders.append(RunFolder.open(path))
        except RunError:
            continue
    return sorted(folders, key=_created, reverse=True)


def read_summary(folder: RunFolder) -> Summary | None:
    """Read the summary of a run; None where it was not judged.

    Raises:
        DamagedError: The file is damaged, or of another version.
    """
    text = folder.read(SUMMARY)
    if text is None:
        return None
    try:
        return parse_summary(text, source=SUMMARY)
    except SummaryError as error:
        raise DamagedError(Damage(folder.path, SUMMARY, error.problem)) from error


def _places(
    root: Path, paper: str | None = None, study: str | None = None
) -> Iterator[Path]:
    """Yield the folders that hold runs, also where their ``run.json`` is gone."""
    with refusing("read", root):
        for path in sorted((root / "runs").glob(f"{paper or '*'}/{study or '*'}/*")):
            if (path / "run.json").exists() or any((path / "cells").glob("*.jsonl")):
                yield path


def _created(folder: RunFolder) -> tuple[str, str]:
    return str(folder.info.get("created", "")), str(folder.path)

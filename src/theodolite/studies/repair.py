"""Repair damaged runs from their finished cells; intact files are not touched."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from theodolite.core import RunError, TheodoliteError
from theodolite.runs import (
    SUMMARY,
    Damage,
    DamagedError,
    RunFolder,
    read_summary,
    results_in,
)

from .judging import PREDICTED, evidence_of, judge, predicted_rows, redraw
from .known_studies import Entry, catalogue
from .planning import plan_again, plan_study


@dataclass(frozen=True)
class Repaired:
    """The result of repairing one run.

    Attributes:
        folder: The run.
        healed: Damaged files that were repaired, or moved away if nothing needs them.
        left: Remaining problems, each with what to do about it.
    """

    folder: Path
    healed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "folder": str(self.folder),
            "healed": list(self.healed),
            "left": list(self.left),
        }


def repair_runs(root: Path | str) -> Iterator[Repaired]:
    """Check every file of every run under a root, and repair damaged ones.

    Cells are never computed here: a run whose cells are damaged is left, with the
    command that computes them.
    """
    results = results_in(root)
    entries = {(e.paper.name, e.name): e for e in catalogue()}
    paths = {folder.path for folder in results.folders}
    paths |= {damage.folder for damage in results.damages}
    for path in sorted(paths):
        yield _repaired(path, entries.get((path.parts[-3], path.parts[-2])))


def _repaired(path: Path, entry: Entry | None) -> Repaired:
    try:
        folder, healed = _opened(path, entry)
    except TheodoliteError as error:
        return Repaired(path, left=(str(error),))
    damages = _damages(folder)
    try:
        _repair_files(entry, folder, damages)
    except TheodoliteError as error:
        return Repaired(path, tuple(healed), (str(error),))
    return Repaired(path, (*healed, *(one.name for one in damages)))


def _repair_files(
    entry: Entry | None, folder: RunFolder, damages: list[Damage]
) -> None:
    """Rewrite what the finished cells determine; move other damaged files away."""
    own = [one for one in damages if not one.name.startswith("launches/")]
    judged = folder.was_written(SUMMARY) or (folder.path / SUMMARY).exists()
    if own and judged:
        if entry is None:
            raise RunError(
                f"{own[0]} and its study is not known here: install its package, or "
                "run its file again, which heals it"
            )
        _judge_again(entry, folder, {one.name for one in own})
    for damage in own:
        if damage.name.startswith("cells/"):
            raise RunError(f"{damage}: run its study again, which computes it")
    for damage in folder.damages():  # records of launches, figures no longer drawn
        folder.set_aside(damage.name)


def _opened(path: Path, entry: Entry | None) -> tuple[RunFolder, list[str]]:
    """Open a folder; rewrite a damaged ``run.json``."""
    try:
        return RunFolder.open(path), []
    except DamagedError as damaged:
        try:
            return RunFolder.restored(path), [damaged.damage.name]
        except DamagedError:
            for spec in _presets(entry):
                if spec.digest == path.name:
                    return RunFolder.create(path.parents[3], spec), ["run.json"]
            raise RunError(
                f"{damaged.damage} and nothing in the folder says what was run: give "
                "the command that made it once more, which finds its cells"
            ) from damaged


def _presets(entry: Entry | None) -> Iterator[Any]:
    """Yield the specs of a study's presets, if their data are available."""
    if entry is None:
        return
    for scale in entry.study.presets:
        with suppress(TheodoliteError):
            yield plan_study(entry, scale=scale).spec


def _damages(folder: RunFolder) -> list[Damage]:
    """Return all damaged files, including those without a digest."""
    damages = {damage.name: damage for damage in folder.damages()}
    for read in (lambda: read_summary(folder), lambda: folder.read(PREDICTED)):
        try:
            read()
        except DamagedError as error:
            damages.setdefault(error.damage.name, error.damage)
    return list(damages.values())


def _judge_again(entry: Entry, folder: RunFolder, damaged: Iterable[str]) -> None:
    """Rewrite damaged predictions, figures and summary."""
    plan = plan_again(entry, folder)
    if PREDICTED in damaged:
        predicted_rows(entry, plan.config, folder)
    if SUMMARY in damaged:
        judge(entry, folder, evidence_of(entry, plan.config, folder), plan)
    elif any(name.startswith("figures/") for name in damaged):
        redraw(entry, folder)

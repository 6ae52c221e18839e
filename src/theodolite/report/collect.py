"""The finished runs of a folder: the latest of each study, with its drawings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from theodolite.core import Summary, TheodoliteError
from theodolite.runs import RunFolder, latest_runs, read_summary


@dataclass(frozen=True, kw_only=True)
class JudgedRun:
    """A judged run as the report shows it.

    Attributes:
        summary: What was found.
        info: How it was run, as its folder says.
        svg: Text of each drawing that is there, by the name of its file.
    """

    summary: Summary
    info: Mapping[str, Any] = field(default_factory=dict)
    svg: Mapping[str, str] = field(default_factory=dict)

    def drawing(self, files: Iterable[str]) -> str:
        """Return the first drawing of these files that is there, or nothing."""
        return next((self.svg[name] for name in files if name in self.svg), "")


def judged_runs(root: Path | str) -> list[JudgedRun]:
    """Return the latest finished run of every study, by year, paper and study.

    Args:
        root: Folder that holds ``runs/``.

    Raises:
        TheodoliteError: Where no run is finished, or a summary cannot be read.
    """
    found = [_run(folder) for folder in latest_runs(root)]
    chosen = latest(one for one in found if one is not None)
    if not chosen:
        raise TheodoliteError(
            f"no finished runs in {root}: run `theodolite run all` first"
        )
    return chosen


def latest(runs: Iterable[JudgedRun]) -> list[JudgedRun]:
    """Keep the run judged last of each study, sorted by year, paper and study."""
    newest: dict[str, JudgedRun] = {}
    for one in runs:
        key = one.summary.full_name
        if key not in newest or one.summary.judged > newest[key].summary.judged:
            newest[key] = one
    return sorted(newest.values(), key=_order)


def _order(run: JudgedRun) -> tuple[int, str, str]:
    paper = run.summary.paper
    return paper.year, paper.name, run.summary.study.name


def _run(folder: RunFolder) -> JudgedRun | None:
    summary = read_summary(folder)
    if summary is None:
        return None
    names = [name for figure in summary.figures for name in figure.files]
    drawn = {name: folder.read(name) for name in names if name.endswith(".svg")}
    svg = {name: text for name, text in drawn.items() if text is not None}
    return JudgedRun(summary=summary, info=folder.info, svg=svg)

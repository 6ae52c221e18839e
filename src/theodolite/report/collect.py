"""The finished runs of a folder: the latest of each study, with its drawings."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from theodolite.core import RunError, Summary, TheodoliteError
from theodolite.report.safe_svg import parsed
from theodolite.runs import Damage, DamagedError, RunFolder, results_in

Told = Callable[[Damage], None]


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


def judged_runs(
    root: Path | str, *, damaged: Told = lambda damage: None
) -> list[JudgedRun]:
    """Return the latest finished run of every study, by year, paper and study.

    Args:
        root: Folder that holds ``runs/``.
        damaged: Told of every file that is passed over because it is damaged.

    Raises:
        TheodoliteError: Where no run is finished, or none can be read.
    """
    results = results_in(root)
    if results.damages and not results.judged:
        raise DamagedError(results.damages[0])
    if not results.judged:
        raise TheodoliteError(
            f"no finished runs in {root}: run `theodolite run all --out "
            f"{shlex.quote(str(root))}` first"
        )
    for damage in results.damages:
        damaged(damage)
    return latest(_run(*one, damaged) for one in results.judged.values())


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


def _run(folder: RunFolder, summary: Summary, damaged: Told) -> JudgedRun:
    names = [name for figure in summary.figures for name in figure.files]
    svg: dict[str, str] = {}
    for name in (name for name in names if name.endswith(".svg")):
        try:
            text = folder.read(name)
            if text is not None:
                parsed(text, name)
                svg[name] = text
        except DamagedError as error:
            damaged(error.damage)
        except RunError:
            damaged(Damage(folder.path, name, "is not a readable SVG"))
    return JudgedRun(summary=summary, info=folder.info, svg=svg)

"""The finished runs of a folder: the latest of each study, with its figures."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from theodolite.core import RunError, Summary, TheodoliteError
from theodolite.pages import parse_svg
from theodolite.runs import Damage, DamagedError, RunFolder, results_in

OnDamage = Callable[[Damage], None]


@dataclass(frozen=True, kw_only=True)
class JudgedRun:
    """A judged run as the report shows it.

    Attributes:
        summary: Its results.
        info: How it was run, as its folder says.
        svg: Text of each figure that is there, by the name of its file.
    """

    summary: Summary
    info: Mapping[str, Any] = field(default_factory=dict)
    svg: Mapping[str, str] = field(default_factory=dict)


def judged_runs(
    root: Path | str, *, damaged: OnDamage = lambda damage: None
) -> list[JudgedRun]:
    """Return the latest finished run of every study, by year, paper and study.

    Args:
        root: Folder that holds ``runs/``.
        damaged: Called with every file that is left out because it is damaged.

    Raises:
        TheodoliteError: No run is finished, or none can be read.
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
    for run in sorted(runs, key=lambda run: run.summary.judged, reverse=True):
        newest.setdefault(run.summary.full_name, run)

    def order(run: JudgedRun) -> tuple[int, str, str]:
        paper = run.summary.paper
        return paper.year, paper.name, run.summary.study.name

    return sorted(newest.values(), key=order)


def newest_summary(runs: Iterable[JudgedRun]) -> Summary:
    """Return the summary that was judged last."""
    return max((run.summary for run in runs), key=lambda summary: summary.judged)


def in_order_of_paper(runs: Iterable[JudgedRun]) -> list[JudgedRun]:
    """Put the runs of one paper in the paper's own order."""
    runs = list(runs)
    studies = newest_summary(runs).paper.studies
    order = {name: place for place, name in enumerate(studies)}

    def place(run: JudgedRun) -> tuple[int, str]:
        name = run.summary.study.name
        return order.get(name, len(order)), name

    return sorted(runs, key=place)


def _run(folder: RunFolder, summary: Summary, damaged: OnDamage) -> JudgedRun:
    names = [name for figure in summary.figures for name in figure.files]
    svg: dict[str, str] = {}
    for name in (name for name in names if name.endswith(".svg")):
        try:
            text = folder.read(name)
            if text is not None:
                parse_svg(text, name)
                svg[name] = text
        except DamagedError as error:
            damaged(error.damage)
        except RunError:
            damaged(Damage(folder.path, name, "is not a readable SVG"))
    return JudgedRun(summary=summary, info=folder.info, svg=svg)

"""The interactive part of a paper: scripts of this package, fed with saved tables.

A summary names an explorer and brings tables. What runs in the page comes with this
package alone: a name that is not known here adds nothing.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from theodolite.core import SavedExhibit, Summary
from theodolite.report.collect import JudgedRun

# Below what a pixel shows, and above what rounding of 64 bits leaves.
_DIGITS = 7
# Files of each explorer, under its name in the folder of templates; in this order.
_SCRIPTS = {
    "path_ensemble": (
        "charts.js",
        "path_ensemble/weights.js",
        "path_ensemble/landscape.js",
        "path_ensemble/minima.js",
        "path_ensemble/measured.js",
        "path_ensemble/state.js",
        "path_ensemble/drawings.js",
        "path_ensemble/sliders.js",
        "path_ensemble/controls.js",
    )
}


@dataclass(frozen=True, kw_only=True)
class ShownExplorer:
    """An explorer as the page shows it.

    Attributes:
        name: Its name.
        template: Its part of the page.
        script: What runs in it.
        style: How it looks.
        tables: What it is fed with, by exhibit: study, source, columns, lines.
        missing: Commands that would make the tables that are not there.
    """

    name: str
    template: str
    script: str
    style: str
    tables: dict[str, list[dict[str, Any]]]
    missing: tuple[str, ...]


def explorer_of(runs: Sequence[JudgedRun]) -> ShownExplorer | None:
    """Return the explorer that the newest run of a paper names, if it is known here.

    Args:
        runs: The runs of one paper, one a study.
    """
    summaries = [run.summary for run in runs]
    paper = max(summaries, key=lambda one: one.judged).paper
    wanted = paper.explorer
    if wanted is None or wanted.name not in _SCRIPTS:
        return None
    shown = {one.study.name for one in summaries if one.exhibits}
    return ShownExplorer(
        name=wanted.name,
        template=f"explorers/{wanted.name}/section.html.j2",
        script="".join(_script(name) for name in _SCRIPTS[wanted.name]),
        style=_text(f"{wanted.name}/style.css"),
        tables=_tables(summaries),
        missing=tuple(
            f"theodolite run {paper.name}/{name}"
            for name in wanted.studies
            if name not in shown
        ),
    )


def _tables(summaries: Iterable[Summary]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for summary in summaries:
        for exhibit in summary.exhibits:
            table = {"study": summary.study.name, **_table(exhibit)}
            found.setdefault(exhibit.name, []).append(table)
    return found


def _table(exhibit: SavedExhibit) -> dict[str, Any]:
    return {
        "source": exhibit.source,
        "columns": exhibit.columns,
        "lines": [[_short(value) for value in line] for line in exhibit.lines],
    }


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def _script(name: str) -> str:
    """Return a script without its comments and margins, which stay in the package."""
    lines = (line.strip() for line in _text(name).splitlines())
    return "".join(f"{one}\n" for one in lines if one and not one.startswith("//"))


@cache
def _text(name: str) -> str:
    file = resources.files("theodolite.report") / "templates" / "explorers" / name
    return file.read_text(encoding="utf-8")

"""The interactive part of a paper: scripts of this package, fed with saved tables.

A summary names an explorer and brings tables. What runs in the page comes with this
package only: a name that is not known here adds nothing.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from theodolite.core import Summary

from .finished_runs import JudgedRun, newest_summary

# Smaller than a pixel, and larger than float64 rounding.
_DIGITS = 7
# Scripts of each explorer in the folder ``explorers`` of the templates, in this order.
EXPLORER_SCRIPTS = {
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


def explorer_of(runs: Sequence[JudgedRun]) -> dict[str, Any] | None:
    """Return the explorer that the newest run of a paper names, if it is known here.

    Args:
        runs: The runs of one paper, one per study.

    Returns:
        Its name, its tables by exhibit (study, source, columns, lines), and the
        commands that would make the tables that are missing.
    """
    summaries = [run.summary for run in runs]
    paper = newest_summary(runs).paper
    wanted = paper.explorer
    if wanted is None or wanted.name not in EXPLORER_SCRIPTS:
        return None
    shown = {one.study.name for one in summaries if one.exhibits}
    missing = [name for name in wanted.studies if name not in shown]
    return {
        "name": wanted.name,
        "tables": _tables(summaries),
        "missing": [f"theodolite run {paper.name}/{name}" for name in missing],
    }


def _tables(summaries: Iterable[Summary]) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for summary in summaries:
        for exhibit in summary.exhibits:
            table = {
                "study": summary.study.name,
                "source": exhibit.source,
                "columns": exhibit.columns,
                **_packed(exhibit.columns, exhibit.lines),
            }
            tables.setdefault(exhibit.name, []).append(table)
    return tables


def _packed(columns: Sequence[str], lines: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return lines whose words are places in a list of them per column."""
    texts: dict[str, list[str]] = {
        name: list(dict.fromkeys(one for one in column if one is not None))
        for name, column in zip(columns, zip(*lines, strict=True), strict=False)
        if all(isinstance(one, str | None) for one in column)
    }
    places = [{text: i for i, text in enumerate(texts.get(n, ()))} for n in columns]
    packed = [
        [known.get(value) if known else _short(value)
         for known, value in zip(places, line, strict=True)]
        for line in lines
    ]  # fmt: skip
    return {"texts": texts, "lines": packed}


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value

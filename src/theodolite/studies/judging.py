"""Make verdicts, figures and the summary that reports read from rows."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from theodolite import figures
from theodolite.core import (
    Evidence,
    Exclusive,
    PredictedAndMeasured,
    Rows,
    Summary,
    check_summary,
    decide,
    from_lines,
    to_lines,
    to_strict_json,
)
from theodolite.runs import DamagedError, RunFolder, write_summary

from .known_studies import Entry
from .planning import Plan, plan_again
from .study import Study

PREDICTED = "predicted.jsonl"
FORMATS = ("svg", "png", "pdf")


def evidence_of(entry: Entry, config: Any, folder: RunFolder) -> Evidence:
    """Return the evidence of a finished run: its rows, and committed ones if wanted."""
    study = entry.study
    predicted = predicted_rows(entry, config, folder)
    return with_committed(
        study, config, PredictedAndMeasured(predicted, folder.rows(study.cells(config)))
    )


def with_committed(study: Study, config: Any, own: PredictedAndMeasured) -> Evidence:
    """Return a run's rows as evidence, with committed rows if its config wants them."""
    committed = study.committed
    if committed is None or not config.committed:
        return Evidence(own)
    return Evidence(
        own, committed.run.predicted_and_measured(own.predicted), committed.on
    )


def judge(
    entry: Entry,
    folder: RunFolder,
    evidence: Evidence,
    plan: Plan,
    formats: Sequence[str] = FORMATS,
) -> Summary:
    """Turn rows into verdicts, figures and the summary that reports read."""
    study = entry.study
    content = to_strict_json(
        {
            "paper": entry.paper.to_dict(),
            "study": {
                "name": entry.name,
                "title": study.title,
                "summary": study.summary,
                "departures": list(study.departures),
            },
            "scale": plan.spec.scale,
            "judged": datetime.now(UTC).isoformat(timespec="microseconds"),
            "command": plan.command,
            "cost": folder.cost().to_dict(),
            "claims": [decide(claim, evidence).to_dict() for claim in study.claims],
            "comparison": study.compare(evidence.own),
            "figures": draw(entry, folder, evidence, formats),
            "exhibits": exhibits(study, evidence),
        }
    )
    summary = check_summary(content, source=f"the summary of {entry.full_name}")
    write_summary(folder, summary)
    return summary


def exhibits(study: Study, evidence: Evidence) -> list[dict[str, Any]]:
    """Return the tables for the explorer: of the committed run, and of this run."""
    return [
        {"name": one.name, "source": source, **_columns(one.table(both))}
        for one in study.exhibits
        for source, both in (("committed", evidence.committed), ("own", evidence.own))
        if both
    ]


def _columns(rows: Rows) -> dict[str, Any]:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return {
        "columns": columns,
        "lines": [[row.get(name) for name in columns] for row in rows],
    }


def redraw(entry: Entry, folder: RunFolder) -> list[Path]:
    """Draw a study's figures again from its saved rows.

    Raises:
        RunError: Cells are missing, or another version of the study made them.
    """
    plan = plan_again(entry, folder)
    drawn = draw(entry, folder, evidence_of(entry, plan.config, folder))
    return [folder.path / name for figure in drawn for name in figure["files"]]


def predicted_rows(entry: Entry, config: Any, folder: RunFolder) -> Rows:
    """Return the predicted rows, computed once per folder, or again if damaged."""
    with suppress(DamagedError, ValueError, TypeError, RecursionError):
        saved = folder.read(PREDICTED)
        if saved is not None:
            return from_lines(saved)
    with Exclusive(interruptible=True), threadpool_limits(1):
        rows = entry.study.predict(config)
    folder.write(PREDICTED, to_lines(rows))
    return from_lines(to_lines(rows))


def draw(
    entry: Entry,
    folder: RunFolder,
    evidence: Evidence,
    formats: Sequence[str] = FORMATS,
) -> list[dict[str, Any]]:
    """Draw every figure for the committed run, if there is one, and for this run."""
    drawn = []
    for drawing in entry.study.drawings:
        with figures.house_style():
            runs = _runs(evidence, folder.spec.scale)
            made = [
                (drawing.draw(drawing.table(both)), *origin) for both, *origin in runs
            ]
            if len(made) > 1:
                figures.match_limits(made[0][0], made[1][0])
        for figure, suffix, source, origin in made:
            name, caption = drawing.name + suffix, f"{drawing.caption} {origin}"
            files = figures.save(figure, name, formats)
            for file, content in files.items():
                folder.write(f"figures/{file}", content)
            names = [f"figures/{file}" for file in files]
            one = {"name": name, "caption": caption, "source": source, "files": names}
            drawn.append(one)
    return drawn


def _runs(
    evidence: Evidence, scale: str
) -> list[tuple[PredictedAndMeasured, str, str, str]]:
    """Return each run to draw: rows, suffix of the file name, source, caption."""
    here = f"Drawn from this run at scale {scale}."
    if evidence.committed is None:
        return [(evidence.own, "", "own", here)]
    where = f" on {evidence.on}" if evidence.on else ""
    words = f"Drawn from the committed run at paper scale{where}."
    ours = [(evidence.own, "_here", "own", here)] if evidence.own else []
    return [(evidence.committed, "", "committed", words), *ours]

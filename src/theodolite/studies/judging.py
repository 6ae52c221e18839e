"""Run a study: compute missing cells, then make verdicts, figures and a summary."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
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
    html_table,
    join_lines,
    png_html,
    to_lines,
    to_strict_json,
)
from theodolite.runs import (
    SUMMARY,
    DamagedError,
    Execution,
    Executor,
    Progress,
    RunFolder,
    Tracker,
    Tracking,
    execute,
    results_in,
)

from .known_studies import Entry
from .planning import Plan, kept_settings, plan_again, prepare_worker
from .study import Study

PREDICTED = "predicted.jsonl"
FORMATS = ("svg", "png", "pdf")


@dataclass(frozen=True)
class Finished:
    """A study that ran to its verdicts."""

    folder: RunFolder
    execution: Execution
    summary: Summary

    def __repr__(self) -> str:
        """Return the verdicts, one per line; ``summary`` holds everything."""
        told = [f"  {one.verdict:<9} {one.claim}" for one in self.summary.claims]
        return join_lines([self._headline(), *told])

    def _repr_html_(self) -> str:
        """Return the verdicts with what decided them, and the figures."""
        lines = [
            (one.verdict, one.statement, one.place, one.own.because if one.own else "")
            for one in self.summary.claims
        ]
        header = ("verdict", "claim", "place", "because")
        figures = sorted((self.folder.path / "figures").glob("*.png"))
        pictures = [png_html(one.read_bytes(), one.stem) for one in figures]
        return html_table(self._headline(), header, lines) + "".join(pictures)

    def _headline(self) -> str:
        return f"{self.summary.study.name}, {len(self.summary.claims)} claims"


def run_study(
    plan: Plan,
    *,
    root: Path | str,
    pool: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    trackers: Iterable[Tracker] | Tracking = (),
    figure_formats: Sequence[str] = FORMATS,
) -> Finished:
    """Run a study to its verdicts; finished cells are kept.

    Args:
        plan: The result of :func:`plan_study`.
        root: Folder of all results.
        pool: Workers to share with other studies.
        jobs: Worker processes where no pool is given; 0 works in this process.
        progress: Shows every finished cell.
        trackers: Get the rows of each computed cell, then the verdicts.
        figure_formats: File formats of each figure; reports show ``svg``, and fonts of
            ``pdf`` take half of the time.
    """
    entry, config = plan.entry, plan.config
    folder = RunFolder.create(root, plan.spec)
    cells = entry.study.cells(config)
    tracking = Tracking.of(trackers) if trackers else None
    with tracking.during(plan.spec.record) if tracking else nullcontext():
        with kept_settings(here=pool is None and jobs == 0):
            execution = execute(
                folder,
                cells,
                plan.work,
                pool=pool,
                jobs=None if pool is not None else jobs,
                initialise=None if pool is not None else prepare_worker,
                progress=progress,
                label=entry.full_name,
                trackers=tracking or (),
            )
        evidence = evidence_of(entry, config, folder)
        summary = judge(entry, folder, evidence, plan, figure_formats)
        if tracking:
            verdicts = Rows(
                {"quantity": "verdict", "claim": one.claim, "value": one.verdict}
                for one in summary.claims
            )
            tracking.log(verdicts, len(cells))
    return Finished(folder, execution, summary)


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
    smaller = study.smaller(config.to_dict())
    if committed is None or not config.committed:
        return Evidence(own, smaller=(smaller, {}))
    return Evidence(
        own,
        committed.run.predicted_and_measured(own.predicted),
        committed.on,
        (smaller, study.smaller(committed.run.config())),
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
    folder.write(SUMMARY, summary.to_text())
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


def last_summary(root: Path | str, entry: Entry) -> tuple[RunFolder, Summary] | None:
    """Return the newest judged run of a study with its summary, if there is one.

    Raises:
        DamagedError: Where all that there are of it are damaged.
    """
    names = {"paper": entry.paper.name, "study": entry.name}
    return results_in(root, **names).last(**names)

"""Run a study: compute missing cells, then judge and draw from rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from theodolite.core import Rows, Summary
from theodolite.runs import (
    Execution,
    Executor,
    Progress,
    RunFolder,
    Tracker,
    Tracking,
    execute,
    results_in,
)

from .judging import FORMATS, evidence_of, judge
from .known_studies import Entry
from .planning import Plan, kept_settings, prepare_worker


@dataclass(frozen=True)
class Finished:
    """A study that ran to its verdicts."""

    folder: RunFolder
    execution: Execution
    summary: Summary


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
    tracking = Tracking.of(trackers)
    with tracking.during({"digest": plan.spec.digest, **plan.spec.to_dict()}):
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
                trackers=tracking,
            )
        evidence = evidence_of(entry, config, folder)
        summary = judge(entry, folder, evidence, plan, figure_formats)
        verdicts = Rows(
            {"quantity": "verdict", "claim": one.claim, "value": one.verdict}
            for one in summary.claims
        )
        tracking.log(verdicts, len(cells))
    return Finished(folder, execution, summary)


def last_summary(root: Path | str, entry: Entry) -> tuple[RunFolder, Summary] | None:
    """Return the newest judged run of a study with its summary, if there is one.

    Raises:
        DamagedError: Where all that there are of it are damaged.
    """
    names = {"paper": entry.paper.name, "study": entry.name}
    return results_in(root, **names).last(**names)

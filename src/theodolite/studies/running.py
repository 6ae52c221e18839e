"""Run a study: measure what is missing, then predict, judge and draw from rows."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from theodolite import data, figures
from theodolite.core import (
    ConfigError,
    Rows,
    RunError,
    from_lines,
    strict,
    to_lines,
)
from theodolite.runs import (
    Execution,
    Executor,
    Progress,
    RunFolder,
    RunSpec,
    Tracker,
    Tracking,
    execute,
    latest,
)
from theodolite.studies.catalogue import Entry
from theodolite.studies.chosen_cells import (
    ChosenCells,
    beside,
    choose,
    largest_difference,
    parse_filters,
)
from theodolite.studies.travelling import StudyWork, part_name


@dataclass(frozen=True)
class Finished:
    """A study that ran to its verdicts."""

    folder: RunFolder
    execution: Execution
    summary: dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """A study that has been found able to run: its config, device and data are there.

    Attributes:
        entry: Which study.
        spec: What names its run folder; datasets count by their checksums.
        config: The study's own config.
        command: How to run it again.
        checksums: Of the datasets that are read from the user's files.
    """

    entry: Entry
    spec: RunSpec
    config: Any
    command: str
    checksums: Mapping[str, str] = field(default_factory=dict)

    @property
    def work(self) -> StudyWork:
        """What a process does with a cell."""
        return StudyWork(self.entry.full_name, self.config.to_dict(), self.checksums)

    def choose(self, filters: Iterable[str]) -> list[Mapping[str, Any]]:
        """Return the cells with these labels, given as ``LABEL=VALUE``."""
        cells = self.entry.study.cells(self.config)
        return choose(cells, parse_filters(filters), self.entry.full_name)

    def run_cells(
        self,
        filters: Iterable[str],
        *,
        root: Path | str,
        pool: Executor | None = None,
        progress: Progress | None = None,
        trackers: Iterable[Tracker] | Tracking = (),
    ) -> ChosenCells:
        """Run some cells into the study's run folder; nothing is judged.

        Args:
            filters: ``LABEL=VALUE`` texts that choose the cells.
            root: Folder of all results.
            pool: Workers; this process by default.
            progress: Told of every finished cell.
            trackers: Told the rows of each computed cell.
        """
        cells = self.choose(filters)
        folder = RunFolder.create(root, self.spec)
        execution = execute(
            folder,
            cells,
            self.work,
            pool=pool,
            jobs=None if pool is not None else 0,
            initialise=None if pool is not None else prepare_worker,
            progress=progress,
            label=self.entry.full_name,
            trackers=trackers,
        )
        committed = self.entry.study.committed
        rows = beside(folder.rows(cells), cells, committed, self.config)
        apart = largest_difference(rows)
        return ChosenCells(folder, execution, tuple(cells), rows, apart)


def plan_study(
    entry: Entry,
    *,
    scale: str,
    n_seeds: int | None = None,
    device: str | None = None,
    elsewhere: bool = False,
) -> Plan:
    """Check a study before anything is computed, and load its data once.

    Args:
        entry: Which study.
        scale: ``smoke``, ``quick`` or ``paper``.
        n_seeds: Trials a point in place of the preset's.
        device: Where networks live, in place of the preset's.
        elsewhere: Other machines will compute: the device need not be here.
    """
    study = entry.study
    config = study.config(scale, n_seeds=n_seeds, device=device)
    if not elsewhere:
        check_device(config.device)
    needed = {
        part_name(name, split): data.load(name, split)
        for name in study.datasets(config)
        for split in study.splits
    }
    sums = {name: found.checksum for name, found in needed.items()}
    spec = RunSpec(
        paper=entry.paper.name,
        study=entry.name,
        scale=scale,
        config={**config.to_dict(), **({"data": sums} if sums else {})},
        revision=study.revision,
        device=config.device,
        seeds=config.seeds,
    )
    from_folder = {
        part: sums[part]
        for part, found in needed.items()
        if data.needs_folder(found.name)
    }
    command = _command(entry, scale, n_seeds, device, bool(from_folder))
    return Plan(entry, spec, config, command, from_folder)


def run_study(
    plan: Plan,
    *,
    root: Path | str,
    pool: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    trackers: Iterable[Tracker] | Tracking = (),
) -> Finished:
    """Bring a study's run folder to its verdicts; finished cells are kept.

    Args:
        plan: What :func:`plan_study` found able to run.
        root: Folder of all results.
        pool: Workers to share with other studies.
        jobs: Worker processes where no pool is given; 0 works in this process.
        progress: Told of every finished cell.
        trackers: Told the rows of each computed cell, then the verdicts.
    """
    entry, config = plan.entry, plan.config
    folder = RunFolder.create(root, plan.spec)
    cells = entry.study.cells(config)
    tracking = Tracking.of(trackers)
    with tracking.during({"digest": plan.spec.digest, **plan.spec.to_dict()}):
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
        predicted = _predicted(entry, config, folder)
        measured = folder.rows(cells)
        summary = judge(entry, folder, predicted, measured, plan)
        tracking.log(_verdicts(summary), len(cells))
    return Finished(folder, execution, summary)


def _verdicts(summary: Mapping[str, Any]) -> Rows:
    """Return the verdicts as rows, for trackers."""
    return Rows(
        {"quantity": "verdict", "claim": claim["claim"], "value": claim["verdict"]}
        for claim in summary["claims"]
    )


def check_device(name: str) -> None:
    """Refuse a device that networks cannot live on here."""
    import torch

    try:
        usable = torch.device(name).type != "meta"
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError):
        usable = False
    if not usable:
        raise ConfigError(
            f"device {name!r} was asked for and is not there: try 'cpu'"
            f"{', or cuda:0' if torch.cuda.is_available() else ''}"
        )


def prepare_worker() -> None:
    """Make a process compute one thing at a time, and the same thing every time."""
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def judge(
    entry: Entry, folder: RunFolder, predicted: Rows, measured: Rows, plan: Plan
) -> dict[str, Any]:
    """Turn rows into verdicts, figures and the summary that reports read."""
    study = entry.study
    claims = []
    for claim in study.claims:
        verdict = claim.check(predicted, measured).to_dict()
        outcome = verdict.pop("outcome")
        claims.append({**claim.to_dict(), "verdict": outcome, **verdict})
    summary = strict(
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
            "claims": claims,
            "comparison": study.compare(predicted, measured),
            "figures": _draw(entry, folder, predicted, measured),
        }
    )
    text = json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False)
    folder.write("summary.json", text + "\n")
    return summary


def redraw(entry: Entry, folder: RunFolder) -> list[Path]:
    """Draw a study's figures again from its saved rows."""
    config = entry.study.config_from(folder.spec.config)
    measured = folder.rows(entry.study.cells(config))
    drawn = _draw(entry, folder, _predicted(entry, config, folder), measured)
    return [folder.path / name for figure in drawn for name in figure["files"]]


def last_summary(root: Path | str, entry: Entry) -> tuple[RunFolder, dict] | None:
    """Return the newest judged run of a study with its summary, if there is one."""
    folder = latest(root, paper=entry.paper.name, study=entry.name)
    text = None if folder is None else folder.read("summary.json")
    if folder is None or text is None:
        return None
    try:
        summary = json.loads(text)
        complete = _complete(summary)
    except (ValueError, TypeError, KeyError):
        complete, summary = False, {}
    if not complete:
        raise RunError(
            f"{folder.path / 'summary.json'} is damaged: run `theodolite run "
            f"{entry.full_name}` again, which keeps all finished cells"
        )
    return folder, summary


def _complete(summary: Any) -> bool:
    """Whether a summary has all that is read of it."""
    parts = {"paper": {"name"}, "study": {"name", "title"}, "cost": {"cpu_s"}}
    told = {"claim", "place", "kind", "statement", "verdict", "because", "numbers"}
    return (
        {"scale", "judged", "figures"} <= set(summary)
        and all(names <= set(summary[part]) for part, names in parts.items())
        and all(told <= set(claim) for claim in summary["claims"])
        and all("files" in figure for figure in summary["figures"])
    )


def _predicted(entry: Entry, config: Any, folder: RunFolder) -> Rows:
    """Return the theory's rows, computed once a folder."""
    saved = folder.read("predicted.jsonl")
    if saved is not None:
        try:
            return from_lines(saved)
        except ValueError:
            pass  # a damaged file: theory is computed again
    with threadpool_limits(1):
        rows = entry.study.predict(config)
    folder.write("predicted.jsonl", to_lines(rows))
    return from_lines(to_lines(rows))


def _draw(
    entry: Entry, folder: RunFolder, predicted: Rows, measured: Rows
) -> list[dict[str, Any]]:
    drawn = []
    for drawing in entry.study.drawings:
        with figures.house_style():
            figure = drawing.draw(predicted, measured)
            files = figures.save(figure, drawing.name)
        names = [f"figures/{name}" for name in files]
        for name, content in zip(names, files.values(), strict=True):
            folder.write(name, content)
        drawn.append({"name": drawing.name, "caption": drawing.caption, "files": names})
    return drawn


def _command(
    entry: Entry,
    scale: str,
    n_seeds: int | None,
    device: str | None,
    from_folder: bool,
) -> str:
    parts = ["theodolite", "run", entry.full_name, "--scale", scale]
    if n_seeds is not None:
        parts += ["--seeds", str(n_seeds)]
    if device is not None:
        parts += ["--device", device]
    if from_folder:
        parts += ["--data", "DIR"]
    return " ".join(parts)

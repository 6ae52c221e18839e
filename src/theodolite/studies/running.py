"""Run a study: measure what is missing, then predict, judge and draw from rows."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
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
    execute,
    latest,
)
from theodolite.studies.catalogue import Entry, find


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
    """

    entry: Entry
    spec: RunSpec
    config: Any
    command: str


def plan_study(
    entry: Entry,
    *,
    scale: str,
    n_seeds: int | None = None,
    device: str | None = None,
) -> Plan:
    """Check a study before anything is computed, and load its data once.

    Args:
        entry: Which study.
        scale: ``smoke``, ``quick`` or ``paper``.
        n_seeds: Trials a point in place of the preset's.
        device: Where networks live, in place of the preset's.
    """
    study = entry.study
    config = study.config(scale, n_seeds=n_seeds, device=device)
    check_device(config.device)
    needed = {name: data.load(name) for name in study.datasets(config)}
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
    from_folder = any(data.needs_folder(name) for name in needed)
    command = _command(entry, scale, n_seeds, device, from_folder)
    return Plan(entry, spec, config, command)


def run_study(
    plan: Plan,
    *,
    root: Path | str,
    pool: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Finished:
    """Bring a study's run folder to its verdicts; finished cells are kept.

    Args:
        plan: What :func:`plan_study` found able to run.
        root: Folder of all results.
        pool: Workers to share with other studies.
        jobs: Worker processes where no pool is given; 0 works in this process.
        progress: Told of every finished cell.
    """
    entry, config = plan.entry, plan.config
    folder = RunFolder.create(root, plan.spec)
    cells = entry.study.cells(config)
    execution = execute(
        folder,
        cells,
        partial(measure_cell, entry.full_name, config.to_dict()),
        pool=pool,
        jobs=None if pool is not None else jobs,
        initialise=None if pool is not None else prepare_worker,
        progress=progress,
        label=entry.full_name,
    )
    predicted = _predicted(entry, config, folder)
    measured = folder.rows(cells)
    summary = judge(entry, folder, predicted, measured, plan)
    return Finished(folder, execution, summary)


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


def measure_cell(name: str, config: Mapping[str, Any], cell: Mapping[str, Any]) -> Rows:
    """Measure one cell of a study; what a worker is sent."""
    study = find(name).study
    return study.measure(study.config_from(config), cell)


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
        complete = {"claims", "figures", "scale", "study", "cost"} <= set(summary)
    except (ValueError, TypeError):
        complete, summary = False, {}
    if not complete:
        raise RunError(
            f"{folder.path / 'summary.json'} is damaged: run `theodolite run "
            f"{entry.full_name}` again, which keeps all finished cells"
        )
    return folder, summary


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

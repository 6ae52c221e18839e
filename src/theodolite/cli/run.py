"""The command that runs studies; heavy imports happen on use."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import RESULTS, AsJson, DataFolder, Out, Trust, use_data
from .output import Line, lines_of, print_claims, print_json
from .streams import print_error, print_text

if TYPE_CHECKING:
    from theodolite.studies import Plan


def run(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="STUDY|PAPER|FILE.py|all", help="What to run, one or more."
        ),
    ],
    scale: Annotated[str, typer.Option(help="smoke, quick or paper.")] = "quick",
    seeds: Annotated[
        int | None, typer.Option(help="Networks per point; the preset's by default.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Worker processes; one per core by default, 0 for none."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:0 …")] = None,
    executor: Annotated[
        str, typer.Option(help="pool for this machine, ray for a cluster.")
    ] = "pool",
    address: Annotated[
        str | None,
        typer.Option(
            help="Ray cluster, HOST:PORT or auto; one is started here by default."
        ),
    ] = None,
    gpus: Annotated[
        float | None, typer.Option(help="GPUs per cell on Ray, such as 0.25.")
    ] = None,
    track: Annotated[
        list[str] | None,
        typer.Option(help="Also tell tensorboard:FOLDER, mlflow:URI or wandb:PROJECT."),
    ] = None,
    cell: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL=VALUE", help="Only such cells of one study, without verdict."
        ),
    ] = None,
    data: DataFolder = None,
    trust: Trust = False,
    out: Out = RESULTS,
    as_json: AsJson = False,
) -> None:
    """Run studies to their verdicts; finished work is kept."""
    from theodolite.core import ConfigError
    from theodolite.runs import (
        LiveProgress,
        Tracking,
        check_executor,
        executor_for,
        progress_for,
        tracker_for,
    )
    from theodolite.studies import plan_study, prepare_worker

    from .studies import named_studies

    if gpus and device is None:
        device = "cuda"
    check_executor(executor, jobs=jobs, address=address, gpus=gpus)
    use_data(data)
    tracking = Tracking([tracker_for(text) for text in track or ()])
    entries = named_studies(names, trust=trust)
    if cell and len(entries) > 1:
        raise ConfigError(
            f"--cell chooses cells of one study and {' '.join(names)!r} is "
            f"{len(entries)} studies: name one, such as {entries[0].full_name}"
        )
    # Whatever is missing for any study is said before the first of them starts.
    plans = [
        plan_study(
            entry,
            scale=scale,
            n_seeds=seeds,
            device=device,
            elsewhere=address is not None,
        )
        for entry in entries
    ]
    if cell and jobs is None and executor == "pool":
        # No more processes than there are cells.
        jobs = min(len(plans[0].choose(cell)), os.cpu_count() or 1)
    workers = executor_for(
        executor,
        jobs=jobs,
        address=address,
        gpus=gpus,
        device=device,
        initialise=prepare_worker,
    )
    chosen, lines, problems = None, [], []
    try:
        with workers as pool, progress_for(sys.stderr) as progress:
            how = {"pool": pool, "progress": progress, "trackers": tracking}
            if cell:
                chosen = plans[0].run_cells(cell, root=out, **how)
            else:
                quiet = as_json or isinstance(progress, LiveProgress)
                lines, problems = _run_studies(plans, out, how, quiet=quiet)
    except KeyboardInterrupt:
        print_error(f"stopped; {_kept(plans, out)}")
        raise typer.Exit(130) from None
    if chosen is None:
        print_claims(lines, as_json)
        raise_first(problems)
    elif as_json:
        print_json(chosen.to_dict())
    else:
        print_text(chosen.to_text())


def _run_studies(
    plans: list["Plan"], out: Path, how: dict[str, Any], *, quiet: bool
) -> tuple[list[Line], list[str]]:
    """Run studies one after the other; a failure does not stop the others.

    Unless ``quiet``, each prints one line when it is done.
    """
    from theodolite.core import Stopwatch, TheodoliteError, count_verdicts
    from theodolite.studies import run_study

    lines: list[Line] = []
    problems: list[str] = []
    for place, plan in enumerate(plans, 1):
        watch = Stopwatch()
        try:
            summary = run_study(plan, root=out, **how).summary
        except TheodoliteError as error:
            problems.append(str(error))
            continue
        except SystemExit as ended:
            problems.append(
                f"{plan.entry.full_name} called sys.exit({ended.code!r}) and has no "
                "verdicts: remove the call, and a rerun resumes from finished cells"
            )
            continue
        lines += lines_of(summary)
        if not quiet:
            took = watch.read().wall_s
            outcomes = count_verdicts(summary.claims).outcomes
            name = f"[{place}/{len(plans)}] {plan.entry.full_name}"
            print_error(f"{name}: done in {took:.1f} s ({outcomes})")
    return lines, problems


def _kept(plans: list["Plan"], out: Path) -> str:
    counts = [plan.finished(out) for plan in plans]
    kept, asked = sum(n for n, _ in counts), sum(n for _, n in counts)
    return (
        f"{kept} of {asked} cells are kept in {out}, and the same command goes on from "
        "there"
    )


def raise_first(problems: list[str]) -> None:
    """Raise the first problem, with the number of the others."""
    if problems:
        from theodolite.core import RunError

        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise RunError(f"{problems[0]}{more}")

"""The commands that list, run and show studies; heavy imports happen on use."""

import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import (
    RESULTS,
    AsJson,
    DataFolder,
    Out,
    Trust,
    require_trust,
    use_data,
)
from .output import (
    Line,
    lines_of,
    print_claims,
    print_error,
    print_json,
    print_summary,
    print_text,
    progress_bars,
)

if TYPE_CHECKING:
    from theodolite.core import Summary
    from theodolite.runs import Damage, RunFolder
    from theodolite.studies import Entry, Plan


def list_studies(
    paper: Annotated[
        str | None, typer.Option(metavar="PAPER|FILE.py", help="Only this paper.")
    ] = None,
    statements: Annotated[
        bool, typer.Option("--statements", help="Print what each claim says, too.")
    ] = False,
    trust: Trust = False,
    out: Out = RESULTS,
    as_json: AsJson = False,
) -> None:
    """List papers, studies and claims with their last verdicts."""
    lines, damages = listed(paper, trust=trust, out=out)
    print_claims(lines, as_json, statements)
    print_damage(damages)


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
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting in place of the preset's."
        ),
    ] = None,
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
    data: DataFolder = None,
    trust: Trust = False,
    out: Out = RESULTS,
    as_json: AsJson = False,
) -> None:
    """Run studies until their claims have verdicts; finished work is kept."""
    from theodolite.runs import (
        check_executor,
        executor_for,
        tracker_for,
    )
    from theodolite.studies import plan_study, prepare_worker

    if gpus and device is None:
        device = "cuda"
    check_executor(executor, jobs=jobs, address=address, gpus=gpus)
    if data is not None:
        use_data(data)
    trackers = [tracker_for(text) for text in track or ()]
    entries = named_studies(names, trust=trust)
    # Whatever is missing for any study is said before the first of them starts.
    plans = [
        plan_study(
            entry,
            scale=scale,
            n_seeds=seeds,
            device=device,
            settings={
                name: value
                for name, _, value in (one.partition("=") for one in settings or ())
            },
            elsewhere=address is not None,
        )
        for entry in entries
    ]
    workers = executor_for(
        executor,
        jobs=jobs,
        address=address,
        gpus=gpus,
        device=device,
        initialise=prepare_worker,
    )
    try:
        with workers as pool, progress_bars() as progress:
            how = {"pool": pool, "progress": progress, "trackers": trackers}
            quiet = as_json or progress is not None
            lines, problems = _run_studies(plans, out, how, quiet=quiet)
    except KeyboardInterrupt:
        print_error(f"stopped; {_kept(plans, out)}")
        raise typer.Exit(130) from None
    print_claims(lines, as_json)
    raise_first(problems)


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


def show(
    study: Annotated[
        str,
        typer.Argument(metavar="STUDY|FILE.py", help="Its name, or the beginning."),
    ],
    out: Out = RESULTS,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Draw the figures again from saved rows.")
    ] = False,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Show the last numbers of a study, and where its figures are."""
    from theodolite.studies import redraw as draw_again

    entry, (folder, summary), damages = last_run(
        study, trust=trust, out=out, code=redraw
    )
    print_damage(damages)
    if redraw and entry is not None:
        draw_again(entry, folder)
    paths = [
        str(folder.path / file) for figure in summary.figures for file in figure.files
    ]
    if as_json:
        where = {"folder": str(folder.path), "figure_paths": paths}
        print_json({**summary.to_dict(), **where})
        return
    print_summary(summary)
    for path in paths:
        print_text(f"figure {path}")


def print_damage(damages: Sequence["Damage"]) -> None:
    """Print which damaged files were skipped."""
    if damages:
        more = f" and {len(damages) - 1} more files" if len(damages) > 1 else ""
        print_error(
            f"{damages[0]}{more}: what is whole is shown, and {damages[0].advice} "
            "heals the rest from the finished cells"
        )


def named_studies(names: Iterable[str], *, trust: bool) -> list["Entry"]:
    """Return the studies with these names, each once.

    ``all`` skips a broken study of another package with a message; requested by its
    name, it is an error.
    """
    from theodolite.studies import select

    entries: list[Entry] = []
    for name in names:
        if name.endswith(".py"):
            entries += studies_in_file(name, trust=trust)
        elif name == "all":
            print_problems()
            entries += usable(select(name))
        else:
            entries += select(name)
    return list(dict.fromkeys(entries))


def listed(
    paper: str | None, *, trust: bool, out: Path
) -> tuple[list[Line], Sequence["Damage"]]:
    """Return the claims to list, with their last verdicts, and what is damaged.

    Studies that ran from a file are listed from their results, without their code.
    """
    from theodolite.runs import results_in
    from theodolite.studies import catalogue

    if paper is None:
        print_problems()
        entries, results = usable(catalogue()), results_in(out)
    elif paper.endswith(".py"):
        entries = studies_in_file(paper, trust=trust)
        results = results_in(out, paper=entries[0].paper.name)
    else:
        results = results_in(out, paper=paper)
        entries = usable(catalogue(None if results.judged else paper))
        entries = [entry for entry in entries if entry.paper.name == paper]
    lines: list[Line] = []
    for entry in entries:
        last = results.judged.get((entry.paper.name, entry.name))
        lines += _lines_of_study(entry, last[1] if last else None)
    known = {(line.paper, line.study) for line in lines}
    for key, (_, summary) in sorted(results.judged.items()):
        lines += [] if key in known else lines_of(summary)
    return lines, results.damages


def _lines_of_study(entry: "Entry", summary: "Summary | None") -> list[Line]:
    judged = {one.claim: one for one in summary.claims} if summary else {}
    lines = []
    for claim in entry.study.claims:
        last = judged.get(claim.name)
        scale = summary.scale if summary and last else None
        lines.append(Line(entry.paper.name, entry.name, claim, scale, last))
    return lines


def last_run(
    name: str, *, trust: bool, out: Path, code: bool
) -> tuple["Entry | None", tuple["RunFolder", "Summary"], Sequence["Damage"]]:
    """Return the last judged run of a study, and the study where it is known.

    Args:
        name: Name of the study, or of its file.
        trust: Whether a file may be run.
        out: Folder of results.
        code: Whether the study itself is needed, not only its results.
    """
    from theodolite.core import RunError, UnknownNameError
    from theodolite.runs import results_in

    entry = None
    try:
        entry = named_study(name, trust=trust)
    except UnknownNameError:
        if (known := _judged_name(name, out)) is None:
            raise
        paper, study = known
        with suppress(UnknownNameError):
            entry = named_study(f"{paper}/{study}", trust=trust)
        if entry is None and code:
            raise RunError(
                f"{name} is known by its results alone, and its own code draws it: "
                "pass the file that it ran from, or install its package"
            ) from None
    else:
        paper, study = entry.paper.name, entry.name
    asked = entry.full_name if entry and not entry.file else shlex.quote(name)
    results = results_in(out, paper=paper, study=study)
    last = results.last(paper, study)
    if last is None:
        raise RunError(
            f"{paper}/{study} has no verdicts in {out}: run `theodolite run "
            f"{asked} --scale quick --out {shlex.quote(str(out))}` first"
        )
    return entry, last, results.damages


def _judged_name(name: str, out: Path) -> tuple[str, str] | None:
    """Return paper and study of the results that a name, or its beginning, means.

    A study that ran from a file is its own paper: ``edge`` means ``edge/edge``.
    """
    from theodolite.core import UnknownNameError
    from theodolite.runs import results_in

    judged = results_in(out).judged
    for known in (
        [key for key in judged if "/".join(key) in (name, f"{name}/{name}")],
        [key for key in judged if key[1] == name],
        [key for key in judged if name and key[1].startswith(name)],
    ):
        if len(known) > 1:
            names = " or ".join("/".join(key) for key in known)
            raise UnknownNameError(f"{name!r} is not unique in {out}: name {names}")
        if known:
            return known[0]
    return None


def named_study(name: str, *, trust: bool) -> "Entry":
    """Return the study with this name, or the only one of a file."""
    from theodolite.core import ConfigError
    from theodolite.studies import find

    if not name.endswith(".py"):
        return find(name)
    entries = studies_in_file(name, trust=trust)
    if len(entries) > 1:
        raise ConfigError(
            f"{name} has {len(entries)} studies and one was wanted: name one that ran "
            f"from it, such as {entries[0].full_name}"
        )
    return entries[0]


def studies_in_file(name: str, *, trust: bool) -> list["Entry"]:
    """Return the studies of a file, if it is trusted."""
    from theodolite.studies import StudyFile, studies_in_file

    file = StudyFile.read(name)
    require_trust(f"the Python file {name}", trust=trust)
    return studies_in_file(file)


def usable(entries: Iterable["Entry"]) -> list["Entry"]:
    """Return the studies that can be loaded; print a sentence about each other one."""
    from theodolite.core import StudyError

    loaded = []
    for entry in entries:
        try:
            _ = entry.study
        except StudyError as error:
            print_error(str(error))
        else:
            loaded.append(entry)
    return loaded


def print_problems() -> None:
    """Print which installed papers cannot be used, and why."""
    from theodolite.studies import plugin_problems

    for problem in plugin_problems():
        print_error(problem)

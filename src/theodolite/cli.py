"""The command line: parses and dispatches; whatever is heavy loads when it is used."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from theodolite import __version__
from theodolite.cli_output import (
    Line,
    lines_of,
    print_json,
    print_lines,
    print_summary,
)
from theodolite.cli_streams import abandon_output, leave, open_streams, say
from theodolite.cli_survey import compare, survey

if TYPE_CHECKING:
    from theodolite.data import Listing
    from theodolite.runs import Damage
    from theodolite.studies import Plan

app = typer.Typer(
    name="theodolite",
    help="Survey the loss landscape of deep networks.",
    no_args_is_help=True,
    add_completion=False,
    # Plain help keeps `theodolite --help` well under a fifth of a second.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _folder(out: Path) -> Path:
    """Refuse a file where a folder of results is wanted."""
    if out.exists() and not out.is_dir():
        from theodolite.core import ConfigError

        raise ConfigError(
            f"--out {out} is a file and a folder of results was wanted: pass a folder, "
            "which need not be there yet"
        )
    return out


Out = Annotated[
    Path, typer.Option("--out", callback=_folder, help="Folder of results.")
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the Python file named without asking.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of datasets; THEODOLITE_DATA by default."),
]
RESULTS = Path("out")


app.command("survey")(survey)
app.command("compare")(compare)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"theodolite {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Survey the loss landscape of deep networks."""


@app.command("list")
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
    """List papers, studies and claims with their last verdict."""
    from theodolite.cli_studies import listed

    lines, damages = listed(paper, trust=trust, out=out)
    _print(lines, as_json, statements)
    _name(damages)


@app.command()
def run(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="STUDY|PAPER|FILE.py|all", help="What to run, one or more."
        ),
    ],
    scale: Annotated[str, typer.Option(help="smoke, quick or paper.")] = "quick",
    seeds: Annotated[
        int | None, typer.Option(help="Networks a point; the preset's by default.")
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
        float | None, typer.Option(help="GPUs a cell on Ray, such as 0.25.")
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
    from theodolite.cli_studies import named_studies
    from theodolite.core import ConfigError
    from theodolite.runs import (
        Tracking,
        check_executor,
        executor_for,
        progress_for,
        tracker_for,
    )
    from theodolite.studies import plan_study, prepare_worker

    if gpus and device is None:
        device = "cuda"
    check_executor(executor, jobs=jobs, address=address, gpus=gpus)
    _use_data(data)
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
                lines, problems = _run_studies(plans, out, how)
    except KeyboardInterrupt:
        say(f"stopped; {_kept(plans, out)}")
        raise typer.Exit(130) from None
    if chosen is None:
        _print(lines, as_json)
        _raise_first(problems)
    elif as_json:
        print_json(chosen.to_dict())
    else:
        typer.echo(chosen.to_text())


def _run_studies(
    plans: list["Plan"], out: Path, how: dict[str, Any]
) -> tuple[list[Line], list[str]]:
    """Run one after the other; one that fails leaves the others their verdicts."""
    from theodolite.core import TheodoliteError
    from theodolite.studies import run_study

    lines: list[Line] = []
    problems: list[str] = []
    for plan in plans:
        try:
            lines += lines_of(run_study(plan, root=out, **how).summary)
        except TheodoliteError as error:
            problems.append(str(error))
    return lines, problems


def _raise_first(problems: list[str]) -> None:
    if problems:
        from theodolite.core import RunError

        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise RunError(f"{problems[0]}{more}")


def _kept(plans: list["Plan"], out: Path) -> str:
    counts = [plan.finished(out) for plan in plans]
    kept, asked = sum(n for n, _ in counts), sum(n for _, n in counts)
    return (
        f"{kept} of {asked} cells are kept in {out}, and the same command goes on from "
        "there"
    )


@app.command()
def show(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY|FILE.py", help="A study, as `theodolite list` says."
        ),
    ],
    out: Out = RESULTS,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Draw the figures again from saved rows.")
    ] = False,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Show a study's last numbers and where its figures are."""
    from theodolite.cli_studies import last_run
    from theodolite.studies import redraw as draw_again

    entry, (folder, summary), damages = last_run(
        study, trust=trust, out=out, code=redraw
    )
    _name(damages)
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
        typer.echo(f"figure {path}")


@app.command()
def report(
    out: Out = RESULTS,
    to: Annotated[
        Path | None, typer.Option(help="File to write; report.html in --out.")
    ] = None,
    errata: Annotated[
        Path | None,
        typer.Option(help="Write the page of errata to this file instead."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write one self-contained HTML page from all finished runs."""
    from theodolite.core import ConfigError
    from theodolite.report import write_errata, write_report

    if errata is not None and to is not None:
        raise ConfigError(
            "--to names the file of the report and --errata asks for the errata: "
            "pass one of them"
        )
    damages: list[Damage] = []
    if errata is None:
        path = write_report(out, to, damaged=damages.append)
    else:
        path = write_errata(out, errata, damaged=damages.append)
    if as_json:
        print_json({"report" if errata is None else "errata": str(path)})
    else:
        typer.echo(f"wrote {path}")
    _name(damages)


@app.command()
def repair(out: Out = RESULTS, as_json: AsJson = False) -> None:
    """Read every file of every run; write what is damaged anew from finished cells.

    Nothing that is whole is touched and no cell is computed. The exit code is 1 if
    something is still wrong.
    """
    from theodolite.studies import repair_runs

    found = list(repair_runs(out))
    if as_json:
        print_json([one.to_dict() for one in found])
    else:
        for one in found:
            if one.healed:
                typer.echo(f"{one.folder}: healed {', '.join(one.healed)}")
        whole = sum(not one.left for one in found)
        typer.echo(f"{whole} of {len(found)} runs in {out} are whole")
    _raise_first([problem for one in found for problem in one.left])


@app.command("data")
def list_data(
    data: DataFolder = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Load everything and check its digests.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List datasets: what is found where, verified or not.

    The exit code is 1 if a set that was found and checked is wrong.
    """
    from theodolite.data import available

    _use_data(data)
    listings = available(verify=verify)
    wrong = [item for item in listings if item.found and item.checked == "wrong"]
    if as_json:
        print_json([listing.to_dict() for listing in listings])
    else:
        _tell_data(listings, wrong)
        if not verify:
            typer.echo("--verify loads each set and checks its published digests")
    if wrong:
        raise typer.Exit(1)


def _tell_data(listings: list["Listing"], wrong: list["Listing"]) -> None:
    for listing in listings:
        state = f"{listing.place} ({listing.checked})" if listing.found else "not found"
        sizes = ", ".join(f"{split} {n:,}" for split, n in listing.sizes.items())
        told = sizes if listing not in wrong else ""
        typer.echo(f"{listing.name:<14} {state}")
        typer.echo(f"{'':<14} {told or listing.advice or 'any size'}")


def _print(lines: list[Line], as_json: bool, statements: bool = False) -> None:
    if as_json:
        print_json([line.to_dict() for line in lines])
    else:
        print_lines(lines, statements=statements)


def _name(damages: Sequence["Damage"]) -> None:
    """Say what was passed over because it is damaged."""
    if damages:
        more = f" and {len(damages) - 1} more files" if len(damages) > 1 else ""
        say(
            f"{damages[0]}{more}: what is whole is shown, and {damages[0].advice} "
            "heals the rest from the finished cells"
        )


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; known problems are one sentence and a non-zero code.

    Args:
        arguments: What follows the command's name; ``sys.argv`` by default.
    """
    open_streams()
    # Figures go to files: a shell's choice of windows, or a wrong one, is nothing here.
    os.environ["MPLBACKEND"] = "agg"
    leave(_run(None if arguments is None else list(arguments)))


def _run(arguments: list[str] | None) -> int:
    """Return the exit code of a command."""
    try:
        app(arguments)
    except SystemExit as ended:
        return (
            ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        )
    except KeyboardInterrupt:
        say("stopped; finished work is kept, and the same command goes on from there")
        return 130
    except MemoryError:
        say("the memory does not suffice: run fewer --jobs, or a smaller --scale")
        return 1
    except OSError as error:
        if error.filename is None:
            abandon_output()
        what = "the output" if error.filename is None else error.filename
        say(f"cannot use {what} ({error.strerror or error}): try another place")
        return 1
    except Exception as error:
        from theodolite.core import TheodoliteError

        if not isinstance(error, TheodoliteError):
            raise
        say(str(error))
        return 1
    return 0


def _use_data(folder: Path | None) -> None:
    """Make a folder of datasets known here and to all workers."""
    if folder is None:
        return
    try:
        there = folder.is_dir()
    except (OSError, ValueError):
        there = False
    if not there:
        from theodolite.core import DataError

        raise DataError(
            f"--data {folder} is not a folder: pass one that holds datasets, such as "
            "a folder with mnist/ in it"
        )
    os.environ["THEODOLITE_DATA"] = str(folder.absolute())


if __name__ == "__main__":
    main()

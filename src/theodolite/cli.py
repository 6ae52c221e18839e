"""The command line: parses and dispatches; whatever is heavy loads when it is used."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from theodolite import __version__
from theodolite.cli_output import (
    Line,
    lines_of,
    print_json,
    print_lines,
    print_summary,
)

if TYPE_CHECKING:
    from theodolite.data import Listing

app = typer.Typer(
    name="theodolite",
    help="Survey the loss landscape of deep networks.",
    no_args_is_help=True,
    add_completion=False,
    # Plain help keeps `theodolite --help` well under a fifth of a second.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Out = Annotated[Path, typer.Option("--out", help="Folder of results.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of datasets; THEODOLITE_DATA by default."),
]
RESULTS = Path("out")


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
    paper: Annotated[str | None, typer.Option(help="Only this paper.")] = None,
    out: Out = RESULTS,
    as_json: AsJson = False,
) -> None:
    """List papers, studies and claims with their last verdict."""
    from theodolite.studies import catalogue, last_summary

    lines: list[Line] = []
    for entry in catalogue(paper):
        found = last_summary(out, entry)
        judged = {one.claim: one for one in found[1].claims} if found else {}
        for claim in entry.study.claims:
            last = judged.get(claim.name)
            scale = found[1].scale if found and last else None
            lines.append(Line(entry.paper.name, entry.name, claim, scale, last))
    _print(lines, as_json)


@app.command()
def run(
    names: Annotated[
        list[str],
        typer.Argument(metavar="STUDY|PAPER|all", help="What to run, one or more."),
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
    out: Out = RESULTS,
    as_json: AsJson = False,
) -> None:
    """Run studies to their verdicts; finished work is kept."""
    from theodolite.core import ConfigError, RunError, TheodoliteError
    from theodolite.runs import (
        Tracking,
        check_executor,
        executor_for,
        progress_for,
        tracker_for,
    )
    from theodolite.studies import plan_study, prepare_worker, run_study, select

    if gpus and device is None:
        device = "cuda"
    check_executor(executor, jobs=jobs, address=address, gpus=gpus)
    _use_data(data)
    tracking = Tracking([tracker_for(text) for text in track or ()])
    entries = list(dict.fromkeys(e for name in names for e in select(name)))
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
    lines: list[Line] = []
    problems: list[str] = []
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
    if cell:
        with workers as pool, progress_for(sys.stderr) as progress:
            chosen = plans[0].run_cells(
                cell, root=out, pool=pool, progress=progress, trackers=tracking
            )
        if as_json:
            print_json(chosen.to_dict())
        else:
            typer.echo(chosen.to_text())
        return
    with workers as pool, progress_for(sys.stderr) as progress:
        for plan in plans:
            try:
                finished = run_study(
                    plan, root=out, pool=pool, progress=progress, trackers=tracking
                )
            except TheodoliteError as error:
                problems.append(str(error))
                continue
            lines += lines_of(finished.summary)
    _print(lines, as_json)
    if problems:
        more = f" (and {len(problems) - 1} more studies)" if len(problems) > 1 else ""
        raise RunError(f"{problems[0]}{more}")


@app.command()
def show(
    study: Annotated[str, typer.Argument(help="A study, as `theodolite list` says.")],
    out: Out = RESULTS,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Draw the figures again from saved rows.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a study's last numbers and where its figures are."""
    from theodolite.core import RunError
    from theodolite.studies import find, last_summary
    from theodolite.studies import redraw as draw_again

    entry = find(study)
    found = last_summary(out, entry)
    if found is None:
        raise RunError(
            f"{entry.full_name} has no verdicts in {out}: run `theodolite run "
            f"{entry.full_name} --out {out}` first"
        )
    folder, summary = found
    if redraw:
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
    path = write_report(out, to) if errata is None else write_errata(out, errata)
    if as_json:
        print_json({"report" if errata is None else "errata": str(path)})
    else:
        typer.echo(f"wrote {path}")


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


def _print(lines: list[Line], as_json: bool) -> None:
    if as_json:
        print_json([line.to_dict() for line in lines])
    else:
        print_lines(lines)


def main() -> None:
    """Run the command line; known problems are one sentence and a non-zero code."""
    try:
        app()
    except KeyboardInterrupt:
        print("stopped; finished work is saved and a rerun resumes", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read the output has enough of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        from theodolite.core import TheodoliteError

        if not isinstance(error, TheodoliteError):
            raise
        print(f"theodolite: {error}", file=sys.stderr)
        sys.exit(1)


def _use_data(folder: Path | None) -> None:
    """Make a folder of datasets known here and to all workers."""
    if folder is None:
        return
    if not folder.is_dir():
        from theodolite.core import DataError

        raise DataError(
            f"--data {folder} is not a folder: pass one that holds datasets, such as "
            "a folder with mnist/ in it"
        )
    os.environ["THEODOLITE_DATA"] = str(folder.absolute())


if __name__ == "__main__":
    main()

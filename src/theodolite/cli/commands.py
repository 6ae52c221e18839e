"""The command line: parses and dispatches; heavy imports happen on use."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from .options import (
    CHECK,
    FILES,
    FIX,
    RESULTS,
    AsJson,
    DataFolder,
    Out,
    app,
    use_data,
)
from .output import (
    abandon_output,
    flush_and_exit,
    open_streams,
    print_error,
    print_json,
    print_text,
)
from .studies import list_studies, print_damage, raise_first, run, show
from .survey import compare, survey

if TYPE_CHECKING:
    from theodolite.data import Listing
    from theodolite.runs import Damage

app.command("survey", rich_help_panel=FIX)(survey)
app.command("compare", rich_help_panel=FIX)(compare)

app.command("list", rich_help_panel=CHECK)(list_studies)
app.command("run", rich_help_panel=CHECK)(run)
app.command("show", rich_help_panel=CHECK)(show)


@app.command(rich_help_panel=CHECK)
def report(
    out: Out = RESULTS,
    to: Annotated[
        Path | None, typer.Option(help="Front page to write; report.html in --out.")
    ] = None,
    errata: Annotated[
        Path | None, typer.Option(help="Write the page of errata to this file instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write HTML pages of all finished runs: the tally, and each paper."""
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
        address = path.absolute().as_uri()
        written = {"report": str(path), "address": address}
        words = f"wrote {path} and a page per paper beside it; open\n{address}"
    else:
        path = write_errata(out, errata, damaged=damages.append)
        written, words = {"errata": str(path)}, f"wrote {path}"
    if as_json:
        print_json(written)
    else:
        print_text(words)
    print_damage(damages)


@app.command(rich_help_panel=FILES)
def repair(out: Out = RESULTS, as_json: AsJson = False) -> None:
    """Check the files of all runs, and rewrite damaged ones.

    They are written again from finished cells. Files that are whole stay as they are,
    and no cell is computed. The exit code is 1 if something is still wrong.
    """
    from theodolite.core import RunError
    from theodolite.studies import repair_runs

    if not out.is_dir():
        raise RunError(f"no runs in {out}, which is not there: pass --out FOLDER")
    repaired = list(repair_runs(out))
    if as_json:
        print_json([one.to_dict() for one in repaired])
    else:
        for one in repaired:
            if one.healed:
                print_text(f"{one.folder}: healed {', '.join(one.healed)}")
        whole = sum(not one.left for one in repaired)
        print_text(f"{whole} of {len(repaired)} runs in {out} are whole")
    raise_first([problem for one in repaired for problem in one.left])


@app.command("data", rich_help_panel=FILES)
def list_data(
    data: DataFolder = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Load everything and check its digests.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List datasets: where they are, and whether they are verified.

    The exit code is 1 if a set that was found and checked is wrong.
    """
    from theodolite.data import available

    if data is not None:
        use_data(data)
    listings = available(verify=verify)
    wrong = [item for item in listings if item.found and item.checked == "wrong"]
    if as_json:
        print_json([listing.to_dict() for listing in listings])
    else:
        _print_datasets(listings, wrong)
        if not verify:
            print_text("--verify loads each set and checks its published digests")
    if wrong:
        raise typer.Exit(1)


def _print_datasets(listings: list["Listing"], wrong: list["Listing"]) -> None:
    for listing in listings:
        state = f"{listing.place} ({listing.checked})" if listing.found else "not found"
        sizes = ", ".join(f"{split} {n:,}" for split, n in listing.sizes.items())
        detail = sizes if listing not in wrong else ""
        print_text(f"{listing.name:<14} {state}")
        print_text(f"{'':<14} {detail or listing.advice or 'any size'}")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; known problems are one sentence and a non-zero code.

    Args:
        arguments: What follows the command's name; ``sys.argv`` by default.
    """
    open_streams()
    # Figures go to files: a shell's choice of windows, or a wrong one, is nothing here.
    os.environ["MPLBACKEND"] = "agg"
    flush_and_exit(_run(None if arguments is None else list(arguments)))


def _run(arguments: list[str] | None) -> int:
    """Return the exit code of a command."""
    try:
        code = app(arguments, standalone_mode=False)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # so Typer ends on | head
            abandon_output()
            return 141
        # No command of ours ends so; a success that was not reached is none.
        print_error(
            f"code that the command ran called sys.exit({ended.code!r}): remove the "
            "call, and the same command goes on from finished work"
        )
        return ended.code if isinstance(ended.code, int) and ended.code else 1
    except (KeyboardInterrupt, typer.Abort) as stopped:
        # Typer makes this of any end of a file; that of a prompt comes without cause.
        if isinstance(stopped.__cause__, EOFError):
            raise stopped.__cause__ from None
        print_error(
            "stopped; finished work is kept, and the same command goes on from there"
        )
        return 130
    except MemoryError:
        print_error(
            "the memory does not suffice: run fewer --jobs, or a smaller --scale"
        )
        return 1
    except OSError as error:
        if error.filename is None:
            abandon_output()
        what = "the output" if error.filename is None else error.filename
        print_error(f"cannot use {what} ({error.strerror or error}): try another place")
        return 1
    except Exception as error:
        from theodolite.core import TheodoliteError

        if isinstance(error, TheodoliteError):
            print_error(str(error))
            return 1
        # Typer's own, of which releases differ in where it comes from.
        if not hasattr(error, "format_message"):
            raise
        print_error(_misused(error))
        return 2
    return code if isinstance(code, int) and not isinstance(code, bool) else 0


def _misused(error: Any) -> str:
    """Return one sentence: what is wrong with the command line, and where to look."""
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message.replace(". Did you mean", ": did you mean")
    path = error.ctx.command_path if getattr(error, "ctx", None) else "theodolite"
    end = "" if message.endswith("?") else ";"
    return f"{message[:1].lower()}{message[1:]}{end} `{path} --help` says what there is"


if __name__ == "__main__":
    main()

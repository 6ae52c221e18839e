"""The application, options that its commands share, and consent to run others' code."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from theodolite import __version__

from .output import print_text

# What people want to do, in the order of `theodolite --help`.
FIX = "Fix a network"
CHECK = "Check a paper"
FILES = "Data and files"


class Grouped(TyperGroup):
    """Commands under what people want to do."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section per group, each command with its whole sentence."""
        for group in (FIX, CHECK, FILES):
            commands = [
                (name, command.get_short_help_str(limit=200))
                for name, command in self.commands.items()
                if getattr(command, "rich_help_panel", None) == group
            ]
            with formatter.section(group):
                formatter.write_dl(commands, col_max=10)


app = typer.Typer(
    name="theodolite",
    cls=Grouped,
    add_completion=False,
    # Plain help keeps `theodolite --help` well under a fifth of a second.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print_text(f"theodolite {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def common(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Find out why a deep network does not train; check papers by experiment.

    Begin with: theodolite survey net.py:make --data digits
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def not_a_file(out: Path) -> Path:
    """Raise if the folder of results is a file."""
    if out.exists() and not out.is_dir():
        from theodolite.core import ConfigError

        raise ConfigError(
            f"--out {out} is a file and a folder of results was wanted: pass a folder, "
            "which need not be there yet"
        )
    return out


Out = Annotated[
    Path, typer.Option("--out", callback=not_a_file, help="Folder of results.")
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the code named without asking.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of datasets; THEODOLITE_DATA by default."),
]
RESULTS = Path("out")


def use_data(folder: Path) -> None:
    """Set the folder of datasets for this process and all its workers."""
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


def require_trust(code: str, *, trust: bool) -> None:
    """Ask the user whether code may run; without a terminal require ``--trust``.

    Args:
        code: What would run, in words.
        trust: Whether ``--trust`` was passed.

    Raises:
        ConfigError: Nobody could be asked, or the answer was no.
    """
    from theodolite.core import ConfigError, not_trusted, printable

    if trust:
        return
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise not_trusted(code)
    asked = " ".join(printable(code).split())
    if not typer.confirm(f"Run {asked} with all your rights?", err=True):
        raise ConfigError(f"{code} was not run, since it is not trusted: read it first")

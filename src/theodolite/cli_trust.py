"""Python files of others are run when a person says so, and not before."""

import sys
from pathlib import Path

import typer


def is_file_name(name: str) -> bool:
    """Say whether a name on the command line is that of a Python file.

    Example:
        >>> is_file_name("studies/mine.py"), is_file_name("li2016demystifying")
        (True, False)
    """
    return name.endswith(".py")


def require_trust(path: Path | str, *, trust: bool) -> None:
    """Ask whether a file may be run; without a terminal ``--trust`` must have said so.

    Raises:
        ConfigError: Nobody could be asked, or the answer was no.
    """
    from theodolite.core import ConfigError

    if trust:
        return
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise ConfigError(
            f"{path} is a Python file, which would be run with all your rights: read "
            "it, then pass --trust"
        )
    if not typer.confirm(f"Run the Python file {path} with all your rights?", err=True):
        raise ConfigError(f"{path} was not run, since it is not trusted: read it first")

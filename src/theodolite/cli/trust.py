"""Code of others runs when a person says so, and not before."""

import sys

import typer


def is_file_name(name: str) -> bool:
    """Say whether a name on the command line is that of a Python file.

    Example:
        >>> is_file_name("studies/mine.py"), is_file_name("li2016demystifying")
        (True, False)
    """
    return name.endswith(".py")


def require_trust(code: str, *, trust: bool) -> None:
    """Ask whether code may run; without a terminal ``--trust`` must have said so.

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

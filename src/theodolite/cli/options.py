"""Options that several commands share, and what becomes of them."""

import os
from pathlib import Path
from typing import Annotated

import typer


def not_a_file(out: Path) -> Path:
    """Refuse a file where a folder of results is wanted."""
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


def use_data(folder: Path | None) -> None:
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

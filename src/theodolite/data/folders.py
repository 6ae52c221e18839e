"""Find the files of a dataset in the folder that the user names."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from theodolite.core import DataError
from theodolite.data.files import is_folder, is_regular, shown

VARIABLE = "THEODOLITE_DATA"


@dataclass(frozen=True)
class Layout:
    """One way in which a split is stored.

    Attributes:
        format: Short name of the format.
        files: The wanted files in order, each as alternative names, best first
            and the published name last.
    """

    format: str
    files: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Found:
    """The files of a split, in the order of the layout."""

    format: str
    files: tuple[Path, ...]

    @property
    def place(self) -> Path:
        """The folder that holds them."""
        return self.files[0].parent


def data_folder(name: str, folder: str | os.PathLike[str] | None, wanted: str) -> Path:
    """Return the folder given, else that of THEODOLITE_DATA, or say what to do."""
    given = folder if folder is not None else os.environ.get(VARIABLE) or None
    if given is None:
        raise DataError(
            f"{name} is read from a folder and none was named: pass --data DIR "
            f"(folder=DIR in Python) or set {VARIABLE}, where DIR holds {wanted}"
        )
    source = VARIABLE if folder is None else "the data folder"
    try:
        path = Path(given).expanduser()
    except (TypeError, RuntimeError):
        path = None
    if path is None or not is_folder(path):
        raise DataError(
            f"{source} is {str(given)[:200]!r}, which is no folder: name one that "
            f"holds {wanted}"
        )
    return path


def locate(
    title: str,
    folder: Path,
    places: Sequence[str],
    layouts: Sequence[Layout],
    *,
    wanted: str,
    how_to: str,
) -> Found:
    """Return the first complete layout in the first place that has one.

    Args:
        title: Dataset and split, for messages.
        folder: The user's data folder.
        places: Folders below it to look into, ``"."`` for itself.
        layouts: Ways to store the split, best first.
        wanted: The files of the usual layout, for messages.
        how_to: How to get the files, for messages.
    """
    partial: DataError | None = None
    for place in places:
        for layout in layouts:
            at = folder / place
            try:
                files = [_first(at, names) for names in layout.files]
            except DataError as error:
                partial = partial or error
                continue
            have = tuple(file for file in files if file is not None)
            if len(have) == len(files):
                return Found(layout.format, have)
            if have and partial is None:
                gone = next(
                    names[-1]
                    for names, file in zip(layout.files, files, strict=True)
                    if file is None
                )
                partial = DataError(
                    f"{title} is incomplete: {shown(at.absolute() / gone)} is missing "
                    f"while {have[0].name} is there; {how_to}"
                )
    raise partial or DataError(
        f"{title} was not found in {shown(folder)}: wanted there {wanted}; {how_to}"
    )


def _first(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if is_regular(folder / name)), None)

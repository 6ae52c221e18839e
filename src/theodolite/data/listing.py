"""The known datasets: where they are, and whether they are verified."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from theodolite.core import DataError

from .checksums import OtherDataError
from .loading import SOURCES, Folder, Source, as_path, load

Checked = Literal["verified", "nothing published", "not checked", "wrong"]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """One dataset, and where it was found.

    Attributes:
        name: Name to pass to :func:`load`.
        found: Whether files of at least one split exist and belong to this dataset.
        place: ``"embedded"``, ``"generated"``, a folder, or ``"not found"``.
        format: How it is stored, empty if not found.
        splits: Splits that were found.
        sizes: Samples of these splits: as published, or as read by a deep check;
            left out where neither is known.
        checked: ``verified`` against a checksum, ``nothing published`` to compare
            with, ``not checked`` (ask with ``verify=True``), or ``wrong``.
        origin: One sentence on where it comes from.
        advice: What is missing or wrong and what to do, empty if nothing is.
    """

    name: str
    found: bool
    place: str
    format: str
    splits: tuple[str, ...]
    sizes: Mapping[str, int]
    checked: Checked
    origin: str
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "splits": list(self.splits), "sizes": dict(self.sizes)}


def available(folder: Folder = None, *, verify: bool = False) -> list[Listing]:
    """List every known dataset.

    Args:
        folder: Where files are; by default the environment's THEODOLITE_DATA.
        verify: Load each split and compare it with its checksum.

    Example:
        >>> [item.name for item in available() if item.place == "embedded"]
        ['digits', 'mnist5k']
    """
    path = as_path(folder)
    return [_list(source, path, verify) for source in SOURCES.values()]


def _list(source: Source, folder: Path | None, verify: bool) -> Listing:
    place, form, splits, advice = _find(source, folder)
    sizes = {split: source.sizes[split] for split in splits if split in source.sizes}
    checked: Checked = "not checked"
    theirs = False
    # The package's own files are small enough to be checked every time.
    if splits and (verify or source.kind == "embedded"):
        checked, sizes, problem = _check(source, splits, folder)
        theirs = isinstance(problem, OtherDataError)
        advice = str(problem or advice)
    return Listing(
        name=source.name,
        found=bool(splits) and not theirs,
        place=place,
        format=form,
        splits=splits,
        sizes=sizes,
        checked=checked,
        origin=source.origin,
        advice=advice,
    )


def _find(source: Source, folder: Path | None) -> tuple[str, str, tuple[str, ...], str]:
    if source.find is None:
        form = "package file" if source.kind == "embedded" else "drawn"
        return source.kind, form, source.splits, ""
    hits: dict[str, tuple[Path, str]] = {}
    problems: list[str] = []
    for split in source.splits:
        try:
            hits[split] = source.find(split, folder)
        except DataError as error:
            problems.append(str(error))
    if not hits:
        return "not found", "", (), problems[0]
    place, form = next(iter(hits.values()))
    # A folder of the user's own need not have every split; a published set does.
    advice = problems[0] if problems and source.sizes else ""
    return str(place), form, tuple(hits), advice


def _check(
    source: Source, splits: tuple[str, ...], folder: Path | None
) -> tuple[Checked, dict[str, int], DataError | None]:
    sizes: dict[str, int] = {}
    verified = True
    for split in splits:
        try:
            dataset = load(source.name, split, folder=folder)
        except DataError as error:
            return "wrong", sizes, error
        sizes[split] = len(dataset)
        verified = verified and dataset.verified
    return ("verified" if verified else "nothing published"), sizes, None

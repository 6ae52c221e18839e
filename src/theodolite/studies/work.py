"""The work of a study, as it is sent to workers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from theodolite import data
from theodolite.core import DataError, Rows, StudyError

from .known_studies import studies_in_file
from .paper import Paper
from .plugins import study_of
from .study import Study
from .study_file import StudyFile


@dataclass(frozen=True)
class StudyWork:
    """Measure cells of one study, in any process.

    Attributes:
        paper: Paper of the study; a worker imports its package by name.
        name: Name of the study in its paper.
        config: Its config as plain values.
        checksums: Checksum of each part of a dataset that is read from the user's
            files, by :func:`part_name`.
        file: The study itself, where no process can import it.
    """

    paper: Paper
    name: str
    config: Mapping[str, Any]
    checksums: Mapping[str, str] = field(default_factory=dict)
    file: StudyFile | None = None

    def __call__(self, cell: Mapping[str, Any]) -> Rows:
        """Measure one cell."""
        study = self._study()
        return study.of_cell(study.config_from(self.config), cell)

    def _study(self) -> Study:
        if self.file is not None:
            (entry,) = (e for e in studies_in_file(self.file) if e.name == self.name)
            return entry.study
        try:
            return study_of(self.paper, self.name)
        except StudyError as error:
            if not isinstance(error.__cause__, ModuleNotFoundError):
                raise
            raise StudyError(
                f"the study {self.paper.name}/{self.name} is not installed where this "
                "worker runs: install its package there, or use the local pool"
            ) from error

    def pack(self) -> dict[str, Any]:
        """Return the datasets that a remote process may lack; see ``Packable``."""
        return {part: data.pack_dataset(_load(part)) for part in self.checksums}

    def unpack(self, fetch: Callable[[str], Any]) -> None:
        """Load each dataset here, or fetch it."""
        for part, checksum in self.checksums.items():
            if not _found_here(part, checksum):
                data.register_dataset(data.unpack_dataset(fetch(part), checksum))


def part_name(name: str, split: str) -> str:
    """Return the name of a split: the dataset's own name for the training split.

    Example:
        >>> part_name("mnist", "train"), part_name("cifar10", "test")
        ('mnist', 'cifar10/test')
    """
    return name if split == "train" else f"{name}/{split}"


def _load(part: str) -> data.Dataset:
    name, _, split = part.partition("/")
    return data.load(name, split or "train")


def _found_here(part: str, checksum: str) -> bool:
    try:
        return _load(part).checksum == checksum
    except DataError:
        return False

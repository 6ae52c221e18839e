"""A study's work as it travels: names and plain values, and the data where needed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from theodolite import data
from theodolite.core import DataError, Rows
from theodolite.studies.catalogue import find


@dataclass(frozen=True)
class StudyWork:
    """Measure cells of one study, in any process.

    Attributes:
        name: Full name of the study.
        config: Its config as plain values.
        checksums: Checksum of each dataset that is read from the user's files.
    """

    name: str
    config: Mapping[str, Any]
    checksums: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, cell: Mapping[str, Any]) -> Rows:
        """Measure one cell."""
        study = find(self.name).study
        return study.measure(study.config_from(self.config), cell)

    def pack(self) -> dict[str, Any]:
        """Return the datasets that a far process may lack; see ``Travelling``."""
        return {name: data.packed(data.load(name)) for name in self.checksums}

    def unpack(self, fetch: Callable[[str], Any]) -> None:
        """Find each dataset where this process is, or fetch it."""
        for name, checksum in self.checksums.items():
            if not _found_here(name, checksum):
                data.provide(data.unpacked(fetch(name), checksum))


def _found_here(name: str, checksum: str) -> bool:
    try:
        return data.load(name).checksum == checksum
    except DataError:
        return False

"""Which papers and studies there are, without importing torch."""

import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from theodolite.core import strict, unknown_name
from theodolite.studies.story import Chapter
from theodolite.studies.study import Study

_ROOT = __package__ or "theodolite.studies"


@dataclass(frozen=True)
class Explorer:
    """An interactive part of the report.

    Attributes:
        name: Name by which the report knows it; its script comes with the report,
            never with a run.
        studies: Studies of the paper whose exhibits it shows.
    """

    name: str
    studies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A paper and the modules of its package that are studies, in its order.

    Attributes:
        name: Name of its package.
        title: Its title.
        authors: Their surnames.
        year: Of its first version.
        studies: Names of the studies.
        explorer: The interactive part of the report on it, where there is one.
        url: Where to read it.
    """

    name: str
    title: str
    authors: str
    year: int
    studies: tuple[str, ...]
    explorer: Explorer | None = None
    url: str = ""

    @property
    def story(self) -> tuple[Chapter, ...]:
        """The chapters of the package's module ``story``; none without one."""
        module = f"{_ROOT}.{self.name}.story"
        return import_module(module).STORY if find_spec(module) else ()

    def to_dict(self) -> dict[str, Any]:
        """Return what a report prints of the paper."""
        return {
            "name": self.name,
            "title": self.title,
            "authors": self.authors,
            "year": self.year,
            "studies": list(self.studies),
            "story": [chapter.to_dict() for chapter in self.story],
            "explorer": strict(self.explorer),
            "url": self.url,
        }


@dataclass(frozen=True)
class Entry:
    """A registered study; its module loads on first use."""

    paper: Paper
    name: str

    @property
    def full_name(self) -> str:
        """``paper/study``, unique."""
        return f"{self.paper.name}/{self.name}"

    @cached_property
    def study(self) -> Study:
        """The study itself."""
        return import_module(f"{_ROOT}.{self.paper.name}.{self.name}").STUDY


def papers() -> list[Paper]:
    """Return every paper that has a package here."""
    package = import_module(_ROOT)
    found = [
        import_module(f"{_ROOT}.{info.name}").PAPER
        for info in pkgutil.iter_modules(package.__path__)
        if info.ispkg
    ]
    return sorted(found, key=lambda paper: (paper.year, paper.name))


def catalogue(paper: str | None = None) -> list[Entry]:
    """Return all studies, or those of one paper."""
    known = papers()
    if paper is not None:
        if paper not in {p.name for p in known}:
            raise unknown_name("paper", paper, [p.name for p in known])
        known = [p for p in known if p.name == paper]
    return [Entry(p, name) for p in known for name in p.studies]


def select(name: str) -> list[Entry]:
    """Return what a name on the command line stands for.

    ``all``, a paper, ``paper/study``, or a study's own name where it is unique.
    """
    entries = catalogue()
    if name == "all":
        return entries
    matching = [
        entry
        for entry in entries
        if name in (entry.paper.name, entry.full_name, entry.name)
    ]
    unique_study = len(matching) == 1 or all(e.paper.name == name for e in matching)
    if matching and unique_study:
        return matching
    raise unknown_name("study or paper", name, ["all", *_names(entries)])


def find(name: str) -> Entry:
    """Return the one study that a name stands for."""
    entries = catalogue()
    matching = [e for e in entries if name in (e.full_name, e.name)]
    if len(matching) == 1:
        return matching[0]
    raise unknown_name("study", name, _study_names(entries))


def _study_names(entries: list[Entry]) -> Iterator[str]:
    """Yield the shortest name that each study can be found by."""
    short = [entry.name for entry in entries]
    for entry in entries:
        yield entry.name if short.count(entry.name) == 1 else entry.full_name


def _names(entries: list[Entry]) -> Iterator[str]:
    yield from {entry.paper.name for entry in entries}
    yield from _study_names(entries)

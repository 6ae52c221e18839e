"""List papers and studies without importing torch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from theodolite.core import StudyError, UnknownNameError, unknown_name

from .paper import Paper
from .plugins import Plugins, plugins, study_of
from .study import Study
from .study_file import StudyFile


@dataclass(frozen=True)
class Entry:
    """A registered study; its module loads on first use.

    Attributes:
        paper: The paper it belongs to.
        name: Its name among the paper's studies.
        file: The file that holds it, if it is not in a package.
    """

    paper: Paper
    name: str
    file: StudyFile | None = None

    @property
    def full_name(self) -> str:
        """``paper/study``, unique."""
        return f"{self.paper.name}/{self.name}"

    @cached_property
    def study(self) -> Study:
        """The study itself.

        Raises:
            StudyError: The package that it is in is broken.
        """
        return study_of(self.paper, self.name)


def own_papers() -> list[Paper]:
    """Return the papers of this distribution, oldest first."""
    return list(plugins(own=True).papers)


def papers() -> list[Paper]:
    """Return every paper: those of this distribution, then those of other packages."""
    own = own_papers()
    return [*own, *_others(own).papers]


def plugin_problems() -> tuple[str, ...]:
    """Return one sentence for each installed paper that cannot be used."""
    own = plugins(own=True)
    return own.problems + _others(own.papers).problems


def _others(own: Iterable[Paper]) -> Plugins:
    return plugins(own=False, taken=[paper.name for paper in own])


def catalogue(paper: str | None = None) -> list[Entry]:
    """Return all studies, or those of one paper."""
    known = papers()
    if paper is not None:
        if paper not in {p.name for p in known}:
            raise unknown_name("paper", paper, [p.name for p in known])
        known = [p for p in known if p.name == paper]
    return _entries(known)


def _entries(known: Iterable[Paper]) -> list[Entry]:
    return [Entry(paper, name) for paper in known for name in paper.studies]


def studies_in_file(file: StudyFile) -> list[Entry]:
    """Run a Python file and return the studies in it.

    Example:
        >>> studies_in_file(StudyFile("nothing.py", b"STUDY = 1"))
        Traceback (most recent call last):
        theodolite.core.errors.StudyError: the study nothing/nothing is int in \
nothing.py: define STUDY = theodolite.studies.Study(…) in a module of its name
    """
    paper = file.paper
    if paper.name in {own.name for own in own_papers()}:
        raise StudyError(
            f"the study {file.path} has the name of the paper {paper.name!r}, which "
            "is taken: give the file, or its PAPER, another name"
        )
    return [Entry(paper, name, file) for name in paper.studies]


def select(name: str) -> list[Entry]:
    """Return the studies that a name on the command line selects.

    ``all``, a paper, ``paper/study``, or a study's own name where it is unique. A
    study of this distribution comes before one of another package.
    """
    if name == "all":
        return catalogue()
    for some in _own_first():
        matching = [e for e in some if name in (e.paper.name, e.full_name, e.name)]
        unique = len(matching) == 1 or all(e.paper.name == name for e in matching)
        if matching and unique:
            return matching
    entries = catalogue()
    named = dict.fromkeys(entry.paper.name for entry in entries)
    raise _unknown("study or paper", name, ["all", *named, *_study_names(entries)])


def find(name: str) -> Entry:
    """Return the study with this name."""
    for some in _own_first():
        matching = [e for e in some if name in (e.full_name, e.name)]
        if len(matching) == 1:
            return matching[0]
    entries = catalogue()
    for entry in entries:
        if entry.paper.name == name:
            raise UnknownNameError(
                f"{name!r} is a paper and one study was wanted: name one of its "
                f"{len(entry.paper.studies)}, such as {entry.name}"
            )
    raise _unknown("study", name, list(_study_names(entries)))


def _own_first() -> Iterator[list[Entry]]:
    """Yield the studies of this distribution, then import those of other packages."""
    own = own_papers()
    yield _entries(own)
    yield _entries(_others(own).papers)


def _unknown(kind: str, name: str, known: list[str]) -> UnknownNameError:
    """Return the error for an unknown name, with the most similar ones."""
    begun = [one for one in known if name and one.startswith(name)]
    near = (begun or get_close_matches(name, known, n=3, cutoff=0.6))[:3]
    *most, last = [repr(one) for one in near] or [""]
    names = f"{', '.join(most)} or {last}" if most else last
    hint = f"did you mean {names}? " if near else ""
    return UnknownNameError(
        f"unknown {kind} {name!r}: {hint}`theodolite list` names all of them"
    )


def _study_names(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the shortest unique name of each study."""
    entries = list(entries)
    short = [entry.name for entry in entries]
    for entry in entries:
        yield entry.name if short.count(entry.name) == 1 else entry.full_name

"""Find papers and their studies: in installed packages by entry points, without torch.

A paper that cannot be used is reported in one sentence and left out: a broken package
never keeps other studies from running.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from theodolite.core import StudyError, UnknownNameError, unknown_name

from .study import SCALES, Paper, Study

if TYPE_CHECKING:
    from .study_file import StudyFile

GROUP = "theodolite.papers"
_DISTRIBUTION = "theodolite"
# Names that can be folders and command-line arguments.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Plugins:
    """Papers of installed packages.

    Attributes:
        papers: Papers that can be used.
        problems: One sentence for each paper that cannot be used.
    """

    papers: tuple[Paper, ...] = ()
    problems: tuple[str, ...] = ()


def plugins(*, own: bool, taken: Iterable[str] = ()) -> Plugins:
    """Return the papers of installed packages.

    Args:
        own: Whether to return the papers of this distribution, or those of others.
        taken: Names that the papers must not have.
    """
    papers: dict[str, Paper] = {}
    problems: list[str] = []
    known = {*taken, "all"}
    for point in _points():
        if (_origin(point) == _DISTRIBUTION) != own:
            continue
        where = f"the entry point {point.name!r} of {_origin(point)}"
        try:
            paper = _paper_of(point, where)
            if paper.name in known | set(papers):
                raise StudyError(
                    f"{where} brings a paper named {paper.name!r}, which is taken: "
                    "its package must give it another name"
                )
            papers[paper.name] = paper
        except StudyError as error:
            problems.append(str(error))
    by_year = sorted(papers.values(), key=lambda paper: (paper.year, paper.name))
    return Plugins(tuple(by_year if own else papers.values()), tuple(problems))


@cache
def _points() -> tuple[EntryPoint, ...]:
    """Return the entry points, each once even if it is installed twice."""
    return tuple(dict.fromkeys(entry_points(group=GROUP)))


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.module


def _paper_of(point: EntryPoint, where: str) -> Paper:
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:
        raise StudyError(
            f"{where} cannot be imported ({reason(error)}): mend the package or "
            "uninstall it; all other studies can be used"
        ) from error
    paper = checked_paper(loaded, f"{where} is", point.value)
    return paper if paper.package else replace(paper, package=point.module)


def checked_paper(paper: Any, what: str, place: str) -> Paper:
    """Return a paper from another package if its names are valid.

    Args:
        paper: The object that the package names as its paper.
        what: Beginning of an error message about it.
        place: Where it is defined.
    """
    if not isinstance(paper, Paper):
        raise StudyError(
            f"{what} {type(paper).__name__} and not a theodolite.studies.Paper: let "
            f"{place} be one"
        )
    if not isinstance(paper.studies, tuple) or not paper.studies:
        raise StudyError(
            f"{what} the paper {paper.name!r}, whose studies are {paper.studies!r}: "
            "pass a tuple of their names"
        )
    for name in (paper.name, *paper.studies):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise StudyError(
                f"{what} the paper {paper.name!r} with the name {name!r} in it: use "
                "letters, digits, dashes and underscores"
            )
    return paper


def study_of(paper: Paper, name: str) -> Study:
    """Return a study of a paper.

    It is ``STUDY`` in the package's module of that name; or the object of that name in
    the package or module itself; or its ``STUDY`` if there is only one study.
    """
    full = f"{paper.name}/{name}"
    try:
        home = import_module(paper.package)
        candidate = _candidate(home, paper, name)
    except (Exception, SystemExit) as error:
        raise StudyError(
            f"the study {full} cannot be imported from {paper.package} "
            f"({reason(error)}): mend it, or name other studies"
        ) from error
    return checked_study(candidate, full, paper.package)


def _candidate(home: ModuleType, paper: Paper, name: str) -> Any:
    module = f"{paper.package}.{name}"
    if hasattr(home, "__path__") and _there(module):
        return getattr(import_module(module), "STUDY", None)
    candidate = getattr(home, name, None)
    if isinstance(candidate, Study) or len(paper.studies) > 1:
        return candidate
    return getattr(home, "STUDY", None)


def _there(name: str) -> bool:
    """Return whether a module of that name exists."""
    return name in sys.modules or find_spec(name) is not None


def checked_study(candidate: Any, full: str, place: str) -> Study:
    """Return a study from another package if it is valid."""
    if not isinstance(candidate, Study):
        what = "nothing" if candidate is None else type(candidate).__name__
        raise StudyError(
            f"the study {full} is {what} in {place}: define STUDY = "
            "theodolite.studies.Study(…) in a module of its name"
        )
    missing = [scale for scale in SCALES if scale not in candidate.presets]
    if missing:
        raise StudyError(
            f"the study {full} has no preset {missing[0]!r}: give one for each of "
            f"{', '.join(SCALES)}"
        )
    return candidate


def reason(error: BaseException) -> str:
    """Return the reason of an error in one line."""
    lines = str(error).strip().splitlines()
    detail = f": {lines[0].rstrip('. ')}" if lines else ""
    return f"{type(error).__name__}{detail}"


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
    file: "StudyFile | None" = None

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

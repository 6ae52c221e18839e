"""Description of a paper: its name, its story and its studies.

The text of a chapter states no result. Results come from verdicts, so that the story
changes with the numbers.
"""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from theodolite.core import to_strict_json


@dataclass(frozen=True)
class Finding:
    """A claim whose verdict a chapter reports.

    Attributes:
        claim: ``study/claim``.
        numbers: Prefixes of the names of numbers to print; the first two by default.
    """

    claim: str
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chapter:
    """A step of the paper's argument.

    Attributes:
        title: Its topic, in one line.
        text: The paper's statement and our question; ``$…$`` is mathematics.
        findings: Claims that answer it, in the order of the argument.
    """

    title: str
    text: str
    findings: tuple[Finding, ...]


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
        name: Name of its package, and of its folder of results.
        title: Its title.
        authors: Their surnames.
        year: Year of its first version.
        studies: Names of the studies.
        explorer: The interactive part of the report on it, where there is one.
        package: Module that its studies are imported from; by default the one that
            the paper's entry point names.
        url: Where to read it.
    """

    name: str
    title: str
    authors: str
    year: int
    studies: tuple[str, ...]
    explorer: Explorer | None = None
    package: str = ""
    url: str = ""

    @property
    def story(self) -> tuple[Chapter, ...]:
        """The chapters of the package's module ``story``; none without one."""
        home = import_module(self.package)
        if not hasattr(home, "__path__"):
            return getattr(home, "STORY", ())
        name = f"{self.package}.story"
        return import_module(name).STORY if find_spec(name) else ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that reports print."""
        fields = to_strict_json(self)
        del fields["package"]
        return {**fields, "story": to_strict_json(self.story)}

"""A study in a single Python file, which is sent to workers."""

import hashlib
import re
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from theodolite.core import StudyError

from .known_studies import Entry, checked_paper, checked_study, own_papers, reason
from .study import Paper

_PREFIX = "theodolite_study_in_"


@dataclass(frozen=True)
class StudyFile:
    """A file with a study; its text is sent to workers, which need no copy.

    Attributes:
        path: Path of the file.
        text: Its content.
    """

    path: str
    text: bytes

    @classmethod
    def read(cls, path: Path | str) -> "StudyFile":
        """Read a file without running it."""
        try:
            return cls(str(path), Path(path).read_bytes())
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise StudyError(
                f"the study {path} cannot be read ({why}): pass the path of a Python "
                "file, or a name that `theodolite list` prints"
            ) from error

    @property
    def digest(self) -> str:
        """SHA-256 of its content."""
        return hashlib.sha256(self.text).hexdigest()

    @property
    def paper(self) -> Paper:
        """Its ``PAPER``, or one named after the file. Runs the file."""
        module = self._module()
        place = f"PAPER in {self.path}"
        if hasattr(module, "PAPER"):
            paper = checked_paper(module.PAPER, f"{place} is", place)
            return replace(paper, package=module.__name__)
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(self.path).stem) or "study"
        study = checked_study(
            getattr(module, "STUDY", None), f"{name}/{name}", self.path
        )
        return Paper(
            name=name,
            title=study.title,
            authors=Path(self.path).name,
            year=datetime.now(UTC).year,
            studies=(name,),
            package=module.__name__,
        )

    def _module(self) -> ModuleType:
        """Run the file once per process, as a module whose objects can be pickled."""
        name = f"{_PREFIX}{self.digest[:16]}"
        if name in sys.modules:
            return sys.modules[name]
        module = ModuleType(name)
        module.__file__ = self.path
        sys.modules[name] = module
        try:
            exec(compile(self.text, self.path, "exec"), module.__dict__)
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            alone = (
                "; a study in one file imports installed packages alone"
                if isinstance(error, ImportError)
                else ""
            )
            raise StudyError(
                f"the study {self.path} cannot be run ({reason(error)}){alone}: see "
                f"what `python {self.path}` says"
            ) from error
        except BaseException:
            del sys.modules[name]
            raise
        return module


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

"""Find the studies that the command line names."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .options import is_file_name, require_trust
from .output import Line, lines_of
from .streams import print_error

if TYPE_CHECKING:
    from theodolite.core import Summary
    from theodolite.runs import Damage, RunFolder
    from theodolite.studies import Entry


def named_studies(names: Iterable[str], *, trust: bool) -> list["Entry"]:
    """Return the studies with these names, each once.

    ``all`` skips a broken study of another package with a message; requested by its
    name, it is an error.
    """
    from theodolite.studies import select

    entries: list[Entry] = []
    for name in names:
        if is_file_name(name):
            entries += studies_in_file(name, trust=trust)
        elif name == "all":
            print_problems()
            entries += usable(select(name))
        else:
            entries += select(name)
    return list(dict.fromkeys(entries))


def listed(
    paper: str | None, *, trust: bool, out: Path
) -> tuple[list[Line], Sequence["Damage"]]:
    """Return the claims to list, with their last verdicts, and what is damaged.

    Studies that ran from a file are listed from their results, without their code.
    """
    from theodolite.runs import results_in
    from theodolite.studies import catalogue

    if paper is None:
        print_problems()
        entries, results = usable(catalogue()), results_in(out)
    elif is_file_name(paper):
        entries = studies_in_file(paper, trust=trust)
        results = results_in(out, paper=entries[0].paper.name)
    else:
        results = results_in(out, paper=paper)
        entries = usable(catalogue(None if results.judged else paper))
        entries = [entry for entry in entries if entry.paper.name == paper]
    lines: list[Line] = []
    for entry in entries:
        last = results.judged.get((entry.paper.name, entry.name))
        lines += _lines_of_study(entry, last[1] if last else None)
    known = {(line.paper, line.study) for line in lines}
    for key, (_, summary) in sorted(results.judged.items()):
        lines += [] if key in known else lines_of(summary)
    return lines, results.damages


def _lines_of_study(entry: "Entry", summary: "Summary | None") -> list[Line]:
    judged = {one.claim: one for one in summary.claims} if summary else {}
    lines = []
    for claim in entry.study.claims:
        last = judged.get(claim.name)
        scale = summary.scale if summary and last else None
        lines.append(Line(entry.paper.name, entry.name, claim, scale, last))
    return lines


def last_run(
    name: str, *, trust: bool, out: Path, code: bool
) -> tuple["Entry | None", tuple["RunFolder", "Summary"], Sequence["Damage"]]:
    """Return the last judged run of a study, and the study where it is known.

    Args:
        name: Name of the study, or of its file.
        trust: Whether a file may be run.
        out: Folder of results.
        code: Whether the study itself is needed, not only its results.
    """
    from theodolite.core import RunError, UnknownNameError
    from theodolite.runs import results_in

    paper, _, study = name.partition("/")
    entry, asked = None, name
    try:
        entry = named_study(name, trust=trust)
        paper, study = entry.paper.name, entry.name
        asked = shlex.quote(name) if entry.file else entry.full_name
    except UnknownNameError:
        left = results_in(out, paper=paper, study=study) if study else None
        if left is None or (paper, study) not in left.judged:
            raise
        if code:
            raise RunError(
                f"{name} is known by its results alone, and its own code draws it: "
                "pass the file that it ran from, or install its package"
            ) from None
    results = results_in(out, paper=paper, study=study)
    last = results.last(paper, study)
    if last is None:
        raise RunError(
            f"{paper}/{study} has no verdicts in {out}: run `theodolite run "
            f"{asked} --scale quick --out {shlex.quote(str(out))}` first"
        )
    return entry, last, results.damages


def named_study(name: str, *, trust: bool) -> "Entry":
    """Return the study with this name, or the only one of a file."""
    from theodolite.core import ConfigError
    from theodolite.studies import find

    if not is_file_name(name):
        return find(name)
    entries = studies_in_file(name, trust=trust)
    if len(entries) > 1:
        raise ConfigError(
            f"{name} has {len(entries)} studies and one was wanted: name one that ran "
            f"from it, such as {entries[0].full_name}"
        )
    return entries[0]


def studies_in_file(name: str, *, trust: bool) -> list["Entry"]:
    """Return the studies of a file, if it is trusted."""
    from theodolite.studies import StudyFile, studies_in_file

    file = StudyFile.read(name)
    require_trust(f"the Python file {name}", trust=trust)
    return studies_in_file(file)


def usable(entries: Iterable["Entry"]) -> list["Entry"]:
    """Return the studies that can be loaded; print a sentence about each other one."""
    from theodolite.core import StudyError

    loaded = []
    for entry in entries:
        try:
            _ = entry.study
        except StudyError as error:
            print_error(str(error))
        else:
            loaded.append(entry)
    return loaded


def print_problems() -> None:
    """Print which installed papers cannot be used, and why."""
    from theodolite.studies import plugin_problems

    for problem in plugin_problems():
        print_error(problem)

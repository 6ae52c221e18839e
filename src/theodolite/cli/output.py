"""How the command line prints: text, errors, claims and studies.

Streams may be closed, full or not Unicode. In all cases a command ends with its exit
code, and after a failure with one sentence if a stream can still be written to.
"""

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from io import TextIOWrapper
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from theodolite.core import (
        Claim,
        SavedJudgement,
        SavedNumber,
        SavedVerdict,
        Summary,
    )
    from theodolite.runs import LiveProgress

_COLOURS = {"HOLDS": "green", "FAILS": "red", "UNDECIDED": "yellow", "NOT RUN": "blue"}
_INDENT = " " * 10


def open_streams() -> None:
    """Make the standard streams safe to write to, before any other file is opened.

    A closed stream becomes the null device: otherwise the next opened file would get
    its file descriptor, and receive the output. Characters that an encoding lacks are
    written as escapes.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # which takes the lowest free number
    sys.stdout = sys.stdout or _null()
    sys.stderr = sys.stderr or _null()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _warning_line


def escape_logs() -> None:
    """Remove terminal escape sequences from the logs of libraries."""
    import logging

    class SafeRecord(logging.LogRecord):
        def getMessage(self) -> str:
            return _safe(super().getMessage())

    logging.setLogRecordFactory(SafeRecord)


def speaks_unicode() -> bool:
    """Return whether standard output can encode every character."""
    encoding = getattr(sys.stdout, "encoding", None) or ""
    return encoding.lower().replace("-", "").replace("_", "").startswith("utf")


def _coloured() -> bool:
    """Return whether to print in colour; see https://no-color.org."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def progress_bars() -> AbstractContextManager["LiveProgress | None"]:
    """Return a live display on a terminal that can draw one, and nothing elsewhere."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return nullcontext()
    from theodolite.runs import LiveProgress

    return LiveProgress(sys.stderr)


def print_text(text: str, *, mark: str = "", colour: str | None = None) -> None:
    """Print to standard output; control characters are escaped.

    Args:
        text: Lines of any origin.
        mark: Prefix of the text.
        colour: Colour of the mark, if the terminal shows colours.
    """
    mark = _safe(mark)
    if colour and _coloured():
        word = mark.lstrip()
        mark = mark.removesuffix(word) + typer.style(word, fg=colour)
    typer.echo(mark + _safe(text))


def print_error(sentence: str) -> None:
    """Print one line to standard error."""
    line = _line(sentence)
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def _line(sentence: str) -> str:
    return _safe(" ".join(f"theodolite: {sentence}".split()))


def _warning_line(message: Warning | str, category: type[Warning], *_: object) -> str:
    """Return a warning of a library as it is printed."""
    return _line(f"{category.__name__}: {message}") + "\n"


def _safe(text: str) -> str:
    if text.isprintable():
        return text  # the most of them, which need nothing loaded
    from theodolite.core import printable

    return printable(text)


def flush_and_exit(code: int) -> NoReturn:
    """Flush the output and exit; print a sentence if the output cannot be written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the pipe has closed it
        _abandon(sys.stdout)
        code = 141
    except (OSError, ValueError) as error:
        _abandon(sys.stdout)
        why = getattr(error, "strerror", None) or error
        print_error(f"the output could not be written ({why}): write it elsewhere")
        code = code or 1
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        _abandon(sys.stderr)
    sys.exit(code)


def abandon_output() -> None:
    """Redirect standard output to the null device after it has failed."""
    _abandon(sys.stdout)


def _null() -> TextIOWrapper:
    return open(os.devnull, "w", encoding="utf-8")


def _abandon(stream: object) -> None:
    """Redirect a stream to the null device, so that Python exits without an error."""
    with suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())  # pyright: ignore[reportAttributeAccessIssue]
        os.close(null)


@dataclass(frozen=True)
class Line:
    """A claim of a study, with its verdict where it has one."""

    paper: str
    study: str
    claim: "Claim | SavedVerdict"
    scale: str | None = None
    verdict: "SavedVerdict | None" = None

    @property
    def name(self) -> str:
        """The claim's own name."""
        return self.claim.name

    def to_dict(self) -> dict[str, Any]:
        """Return the line as JSON values."""
        one = self.verdict
        return {
            "paper": self.paper,
            "study": self.study,
            "scale": self.scale,
            "claim": self.name,
            "place": self.claim.place,
            "kind": str(self.claim.kind),
            "statement": self.claim.statement,
            "verdict": one and one.verdict,
            "as_corrected": one and one.as_corrected,
            "confirmed": one.confirmed if one and one.kind == "erratum" else None,
            "because": one.because if one else "",
            "deciding": one and _deciding(one.deciding),
            "needed": one and one.ruling.needed,
            "hangs_on_ours": one and one.hangs_on_ours,
            "depends_on_reading": one and one.depends_on_reading,
            "shortened": one.shortened if one else "",
            "departures": list(one.departures) if one else [],
            "grade": one.grade if one else "",
            "died": one.ruling.died if one else "",
            "rests_on": one.rests_on if one else "",
            "alone": one and one.alone,
            "numbers": one.numbers if one else {},
        }


def lines_of(summary: "Summary") -> list[Line]:
    """Return the claims of a judged study."""
    names = summary.paper.name, summary.study.name
    return [Line(*names, one, summary.scale, one) for one in summary.claims]


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    from theodolite.core import to_strict_json

    escaped = not speaks_unicode()
    print_text(json.dumps(to_strict_json(value), indent=2, ensure_ascii=escaped))


def print_claims(lines: list[Line], as_json: bool, statements: bool = False) -> None:
    """Print claims as JSON or as text."""
    if as_json:
        print_json([line.to_dict() for line in lines])
    else:
        print_lines(lines, statements=statements)


def print_lines(lines: list[Line], *, statements: bool = False) -> None:
    """Print claims by study, then how many hold; statements are optional."""
    from theodolite.core import count_verdicts

    width = max((len(line.name) for line in lines), default=0)
    last = None
    for line in lines:
        study = f"{line.paper}/{line.study}"
        if study != last:
            print_text(f"{study}{f' ({line.scale})' if line.scale else ''}")
            last = study
        verdict = str(line.verdict.verdict) if line.verdict else "NOT RUN"
        kind = "" if line.claim.kind == "claim" else str(line.claim.kind)
        marks = "".join(f"  [{one}]" for one in _marks(line.verdict))
        print_text(
            f" {line.name:<{width}}  {kind:<7}  {line.claim.place}{marks}",
            mark=f"  {verdict:<9}",
            colour=_COLOURS.get(verdict),
        )
        if statements:
            print_text(_wrapped(line.claim.statement))
    if lines:
        waiting = sum(x.verdict is None and x.claim.kind == "claim" for x in lines)
        judged = [line.verdict for line in lines if line.verdict is not None]
        print_text(str(count_verdicts(judged, not_run=waiting)))


def _wrapped(statement: str) -> str:
    """Return a statement, indented and wrapped to the terminal's width."""
    room = max(40, get_terminal_size().columns - 1)
    indent = "  " + _INDENT
    return fill(
        statement, room, initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def print_summary(summary: "Summary") -> None:
    """Print a judged study: its claims, the deciding numbers, and their margins."""
    print_text(f"{summary.full_name}: {summary.study.title}")
    print_text(
        f"scale {summary.scale}, judged {summary.judged}, "
        f"{summary.cost.cpu_s:.1f} s of processor time\n"
    )
    for one in summary.claims:
        kind = "" if one.kind == "claim" else f", {one.kind}"
        marks = "".join(f"  [{mark}]" for mark in _marks(one))
        print_text(
            f" {one.claim} ({one.place}{kind}){marks}",
            mark=f"{one.verdict:<9}",
            colour=_COLOURS.get(one.verdict),
        )
        for line in _grounds(one):
            print_text(f"{_INDENT}{line}")


def _marks(verdict: "SavedVerdict | None") -> Iterator[str]:
    """Yield the tags that are printed behind a verdict."""
    if verdict is None:
        return
    if verdict.kind == "erratum":
        state = "confirmed" if verdict.confirmed else "not confirmed"
        yield f"{verdict.grade or 'false'}, {state}"
    yield from verdict.words
    if verdict.hangs_on_ours:
        yield "our margin"
    if verdict.rests_on == "committed":
        yield "committed"


def _grounds(verdict: "SavedVerdict") -> Iterator[str]:
    """Yield the reasons of a verdict, line by line."""
    both = verdict.own is not None and verdict.committed is not None
    printed = " as printed" if verdict.kind == "erratum" else ""
    for name, ruling in verdict.rulings:
        whose = {"own": "this run", "committed": "committed run"}[name]
        prefix = f"{ruling.outcome}{printed}: " if both or printed else ""
        yield f"{f'{whose}, ' if both else ''}{prefix}{ruling.because}"
        if ruling.corrected is not None:
            prefix = f"{ruling.corrected.outcome} as corrected: "
            yield f"{f'{whose}, ' if both else ''}{prefix}{ruling.corrected_because}"
        if ruling.died:
            yield f"{f'{whose}, ' if both else ''}{ruling.died}"
    for one in verdict.ruling.judged.readings:
        yield f"reading {one.name}: {one.outcome}. {one.note}"
    if verdict.shortened:
        yield f"shortened: {verdict.shortened}"
    yield from (f"departs from the paper: {one}" for one in verdict.departures)
    yield from _hanging(verdict)
    for name, number in verdict.numbers.items():
        yield f"{name}: {_number(number)}"


def _hanging(verdict: "SavedVerdict") -> Iterator[str]:
    """Yield our margins and choices, and at which margin the verdict would change."""
    yield from (leaf.margin for leaf in verdict.ruling.judged.ours)
    corrected = verdict.ruling.corrected
    if corrected is not None:
        yield from (f"as corrected, {leaf.margin}" for leaf in corrected.ours)
    for choice in verdict.choices:
        yield f"our choice: {choice.what} ({choice.why})"


def _deciding(leaf: "SavedJudgement") -> dict[str, Any]:
    """Return the deciding number as JSON values."""
    kept = ("name", "value", "error", "low", "high", "n", "region", "turns_at", "note")
    return {name: getattr(leaf, name) for name in kept}


def _number(number: "SavedNumber") -> str:
    if number.value is None:
        return "not finite"
    if number.error is None:
        return f"{number.value:.6g}"
    return f"{number.value:.6g} ± {number.error:.2g}"

"""How the command line prints claims and studies."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any

from .streams import print_text, speaks_unicode

if TYPE_CHECKING:
    from theodolite.core import (
        Claim,
        SavedJudgement,
        SavedNumber,
        SavedVerdict,
        Summary,
    )

_COLOURS = {"HOLDS": "green", "FAILS": "red", "UNDECIDED": "yellow"}
_INDENT = " " * 10


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
        verdict = str(line.verdict.verdict) if line.verdict else "not run"
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
        yield "confirmed" if verdict.confirmed else "not confirmed"
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

"""Summaries laid out for the template: papers, their studies, their claims."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from theodolite.core import Kind, SavedPaper
from theodolite.report.collect import JudgedRun
from theodolite.report.explorers import explorer_of
from theodolite.report.plates import plates
from theodolite.report.sheet import Sheet
from theodolite.report.story import arrange, balance, story
from theodolite.report.verdicts import panels

_MINUTE = "%Y-%m-%d %H:%M UTC"
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_ADDRESS = re.compile(r"https?://[^\s\"'<>\\]+", re.ASCII)
# So many claims of a study are seen at once; what is beyond them is folded by kind.
_SEEN = 6
_KINDS = (
    (Kind.CLAIM, "more claim"),
    (Kind.ERRATUM, "erratum"),
    (Kind.BEYOND, "statement beyond the paper"),
)
_PLURALS = {"erratum": "errata", "statement beyond the paper": "statements beyond it"}


def lay_out(shown: Iterable[JudgedRun], sheet: Sheet) -> list[dict[str, Any]]:
    """Return the papers with their studies, in the order of the page.

    Args:
        shown: One run a study, those of a paper together.
        sheet: Where the page keeps what its drawings share.
    """
    names = Names()
    papers = []
    for _, group in groupby(shown, key=lambda one: one.summary.paper.name):
        runs = arrange(group)
        paper = max(runs, key=lambda one: one.summary.judged).summary.paper
        name = names.new(paper.name)
        studies = [_study(one, names, sheet) for one in runs]
        papers.append(
            {
                "id": name,
                "paper": paper,
                "url": address(paper),
                "studies": studies,
                "balance": balance(studies),
                "story": story(studies),
                "explorer": explorer_of(runs),
            }
        )
    return papers


def address(paper: SavedPaper) -> str:
    """Return where a paper can be read, if what it says is an address of the web."""
    return paper.url if _ADDRESS.fullmatch(paper.url) else ""


def _study(run: JudgedRun, names: "Names", sheet: Sheet) -> dict[str, Any]:
    summary = run.summary
    way = (summary.paper.name, summary.study.name)
    name = names.new(*way)
    claims = [
        {"id": names.new(*way, one.claim), "claim": one, "panels": panels(one, sheet)}
        for one in summary.claims
    ]
    return {
        "id": name,
        "run": summary,
        "paragraphs": [p for p in summary.study.summary.split("\n\n") if p.strip()],
        "claims": claims,
        "groups": groups(claims),
        "marks": [e for e in claims if e["claim"].kind is Kind.CLAIM],
        "errata": [e for e in claims if e["claim"].kind is Kind.ERRATUM],
        "beyond": [e for e in claims if e["claim"].kind is Kind.BEYOND],
        "plates": plates(
            run, sheet=sheet, name=lambda figure: names.new(*way, "figure", figure)
        ),
        "config": _config(run.info),
        "cost": summary.cost,
        "origin": _origin(run.info),
    }


def groups(claims: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Cut the claims of a study into those seen at once and those folded, by kind.

    The paper's own claims come first, then errata, then what goes beyond it; what
    does not fit on a screen is folded, never a single one alone.
    """
    order = {kind: place for place, (kind, _) in enumerate(_KINDS)}
    ordered = sorted(claims, key=lambda entry: order[entry["claim"].kind])
    if len(ordered) <= _SEEN + 1:
        return [{"title": "", "entries": ordered}]
    found = [{"title": "", "entries": ordered[:_SEEN]}]
    for kind, word in _KINDS:
        rest = [e for e in ordered[_SEEN:] if e["claim"].kind is kind]
        if rest:
            found.append({"title": _several(len(rest), word), "entries": rest})
    return found


def _several(n: int, word: str) -> str:
    return f"{n} {word if n == 1 else _PLURALS.get(word, f'{word}s')}"


def _config(info: Mapping[str, Any]) -> dict[str, Any]:
    config = info.get("config")
    return dict(config) if isinstance(config, Mapping) else {}


def _origin(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a run came from, each under the word that the page shows."""
    words = {
        "version": "Version",
        "commit": "Commit",
        "revision": "Revision of the study",
        "device": "Device",
        "seeds": "Seeds",
        "created": "Started",
        "python": "Python",
        "packages": "Packages",
        "platform": "Platform",
    }
    found = {word: info.get(key) for key, word in words.items()}
    if found["Commit"]:
        changed = " and uncommitted changes" if info.get("dirty") else ""
        found["Commit"] = f"{str(found['Commit'])[:12]}{changed}"
    found["Started"] = minute(str(found["Started"] or ""))
    return {word: one for word, one in found.items() if one not in (None, "", [], {})}


def minute(stamp: str) -> str:
    """Write a time to the minute; what is not a time stays as it is.

    Example:
        >>> minute("2026-03-02T10:05:31.123456+00:00")
        '2026-03-02 10:05 UTC'
    """
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC).strftime(_MINUTE)
    except ValueError:
        return stamp


class Names:
    """Identifiers for the elements of one page, no two alike."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, *parts: str) -> str:
        """Return a fresh identifier made of these parts."""
        # Single hyphens within parts would let "a-b" + "c" meet "a" + "b-c".
        base = "--".join(_UNSAFE.sub("-", part).strip("-") or "x" for part in parts)
        name, copy = f"r-{base}", 2
        while name in self._taken:
            name, copy = f"r-{base}---{copy}", copy + 1
        self._taken.add(name)
        return name

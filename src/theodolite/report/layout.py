"""Prepare summaries for the template: papers, stories, studies and figures."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from theodolite.core import Kind, SavedFigure, SavedVerdict, Summary, count_verdicts
from theodolite.pages import SharedSvg, inline_svg, to_plain

from .claims import panels
from .explorers import explorer_of
from .finished_runs import JudgedRun, in_order_of_paper, newest_summary

_MINUTE = "%Y-%m-%d %H:%M UTC"
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_ADDRESS = re.compile(r"https?://[^\s\"'<>\\]+", re.ASCII)
# This many claims of a study are shown at once; the others are folded by kind.
_SEEN = 6
_KINDS = (
    (Kind.CLAIM, "more claim"),
    (Kind.ERRATUM, "erratum"),
    (Kind.BEYOND, "statement beyond the paper"),
)
_PLURALS = {"erratum": "errata", "statement beyond the paper": "statements beyond it"}
# Ends the name of a figure of this run that stands beside one of the committed run.
_HERE = "_here"
_DRAWN_FROM = re.compile(r"\s*Drawn from ([^.]*)\.\s*$")


def lay_out(shown: Sequence[JudgedRun], shared: SharedSvg) -> dict[str, Any]:
    """Return a paper with its studies, in the order of its page.

    Args:
        shown: One run per study of the paper.
        shared: Shapes and styles that the page's drawings share.
    """
    names = Names()
    runs = in_order_of_paper(shown)
    newest = newest_summary(runs)
    paper = newest.paper
    name = names.new(paper.name)
    studies = [_study(one, names, shared) for one in runs]
    return {
        "id": name,
        "paper": paper,
        "url": paper.url if _ADDRESS.fullmatch(paper.url) else "",
        "studies": studies,
        "balance": _balance(studies, newest),
        "story": _story(studies, newest),
        "explorer": explorer_of(runs),
    }


def _study(run: JudgedRun, names: "Names", shared: SharedSvg) -> dict[str, Any]:
    summary, config = run.summary, run.info.get("config")
    way = (summary.paper.name, summary.study.name)
    name = names.new(*way)
    claims = [
        {"id": names.new(*way, one.claim), "claim": one, "panels": panels(one, shared)}
        for one in summary.claims
    ]

    def of_kind(kind: Kind) -> list[dict[str, Any]]:
        return [entry for entry in claims if entry["claim"].kind is kind]

    return {
        "id": name,
        "run": summary,
        "paragraphs": [p for p in summary.study.summary.split("\n\n") if p.strip()],
        "claims": claims,
        "groups": groups(claims),
        "marks": [of_kind(kind) for kind, _ in _KINDS],
        "figures": _figures(
            run, shared=shared, name=lambda figure: names.new(*way, "figure", figure)
        ),
        "config": dict(config) if isinstance(config, Mapping) else {},
        "cost": summary.cost,
        "origin": _origin(run.info),
    }


def _balance(studies: Sequence[Mapping[str, Any]], paper: Summary) -> dict[str, Any]:
    """Return how many claims hold, fail, are undecided or wrong in print.

    Args:
        studies: The studies of one paper as laid out for the page.
        paper: The newest summary of the paper.
    """
    runs: list[Summary] = [study["run"] for study in studies]
    claims = [one for run in runs for one in run.claims]
    done = {run.study.name for run in runs}
    return {
        "tally": count_verdicts(claims),
        "beyond": sum(one.kind is Kind.BEYOND for one in claims),
        "committed": sum(one.rests_on == "committed" for one in claims),
        "scales": Counter(run.scale for run in runs),
        "missing": [name for name in paper.paper.studies if name not in done],
    }


def _story(
    studies: Sequence[Mapping[str, Any]], paper: Summary
) -> list[dict[str, Any]]:
    """Return the chapters of a paper, each with the verdicts that are there.

    Claims without a verdict are listed as not run, by study.
    """
    known = {
        f"{study['run'].study.name}/{entry['claim'].name}": entry
        for study in studies
        for entry in study["claims"]
    }
    return [
        {
            "title": chapter.title,
            "text": chapter.text,
            "findings": [
                _finding(known[one.claim], one.numbers)
                for one in chapter.findings
                if one.claim in known
            ],
            "missing": sorted(
                {
                    one.claim.partition("/")[0]
                    for one in chapter.findings
                    if one.claim not in known
                }
            ),
        }
        for chapter in paper.paper.story
    ]


def _finding(entry: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    """Return a verdict with its key numbers."""
    claim: SavedVerdict = entry["claim"]
    chosen = [name for name in claim.numbers if name.startswith(tuple(wanted))]
    numbers = {name: claim.numbers[name] for name in chosen}
    return {"id": entry["id"], "claim": claim, "numbers": numbers}


def groups(claims: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Split the claims of a study into shown and folded groups, by kind.

    The paper's own claims come first, then errata, then our own statements. Groups that
    do not fit on a screen are folded, but never a single claim.
    """
    order = {kind: place for place, (kind, _) in enumerate(_KINDS)}
    ordered = sorted(claims, key=lambda entry: order[entry["claim"].kind])
    if len(ordered) <= _SEEN + 1:
        return [{"title": "", "entries": ordered}]
    shown = [{"title": "", "entries": ordered[:_SEEN]}]
    for kind, word in _KINDS:
        rest = [e for e in ordered[_SEEN:] if e["claim"].kind is kind]
        if rest:
            words = word if len(rest) == 1 else _PLURALS.get(word, f"{word}s")
            shown.append({"title": f"{len(rest)} {words}", "entries": rest})
    return shown


def _figures(
    run: JudgedRun, *, shared: SharedSvg, name: Callable[[str], str]
) -> list[dict[str, Any]]:
    """Return the figures of a run as the template shows them.

    Args:
        run: The run.
        shared: Shapes and styles that the page's drawings share.
        name: Gives a figure its identifier in the page.
    """
    figures = {one.name: one for one in run.summary.figures}

    def laid_out(figure: SavedFigure) -> dict[str, Any]:
        twin = figures.get(f"{figure.name}{_HERE}")
        return {
            "id": name(figure.name),
            "caption": _DRAWN_FROM.sub("", figure.caption),
            "run": _which(run, figure),
            "svg": _drawn(run, figure, shared),
            "twin": laid_out(twin) if twin else None,
        }

    twins = {f"{one}{_HERE}" for one in figures}
    return [laid_out(one) for key, one in figures.items() if key not in twins]


def _which(run: JudgedRun, figure: SavedFigure) -> str:
    """Return which run is drawn, from the caption if it says so."""
    match = _DRAWN_FROM.search(figure.caption)
    words = match[1] if match else ""
    if figure.source == "own" or words in ("", "this run"):
        words = f"this run at scale {run.summary.scale}"
    return f"{words[:1].upper()}{words[1:]}"


def _drawn(run: JudgedRun, figure: SavedFigure, shared: SharedSvg) -> str | None:
    text = next((run.svg[name] for name in figure.files if name in run.svg), None)
    if text is None:
        return None
    caption = to_plain(figure.caption) or figure.name
    return inline_svg(
        text,
        shared=shared,
        label=f"{run.summary.study.title}: {caption}",
        source=f"figure {figure.name} of {run.summary.full_name}",
    )


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
    origin = {word: info.get(key) for key, word in words.items()}
    if origin["Commit"]:
        changed = " and uncommitted changes" if info.get("dirty") else ""
        origin["Commit"] = f"{str(origin['Commit'])[:12]}{changed}"
    origin["Started"] = minute(str(origin["Started"] or ""))
    return {word: one for word, one in origin.items() if one not in (None, "", [], {})}


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
    """Unique identifiers for the elements of one page, and for pages."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, *parts: str) -> str:
        """Return a new identifier made of these parts."""
        # Single hyphens within parts would let "a-b" + "c" meet "a" + "b-c".
        base = "--".join(_UNSAFE.sub("-", part).strip("-") or "x" for part in parts)
        name, copy = f"r-{base}", 2
        while name in self._taken:
            name, copy = f"r-{base}---{copy}", copy + 1
        self._taken.add(name)
        return name

"""What the report reads of one finished run, checked field by field."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from theodolite.core import Kind, Outcome, RunError


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One claim with its verdict.

    ``numbers`` maps a name to value and error; ``rests_on`` names other rows than the
    run's own that decided, if so, and ``alone`` is what the run's own say.
    """

    name: str
    place: str
    kind: Kind
    statement: str
    rival: str
    printed: str
    corrected: str
    verdict: Outcome
    because: str
    numbers: Mapping[str, tuple[float | None, float | None]]
    rests_on: str = ""
    alone: Outcome | None = None


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One number predicted and measured; None is unknown or not finite."""

    label: str
    predicted: float | None
    predicted_error: float | None
    measured: float | None
    error: float | None


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure: its SVG text is empty where the run holds none."""

    name: str
    caption: str
    svg: str = ""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim that a chapter tells, and how the names of its key numbers begin."""

    claim: str
    numbers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """A step of the paper's argument, with the claims that answer it."""

    title: str
    text: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A finished run: the paper, the study, what was found and how it was run."""

    paper: str
    paper_title: str
    authors: str
    year: int
    study: str
    title: str
    text: str
    departures: tuple[str, ...]
    scale: str
    judged: str
    command: str
    cost: Mapping[str, Any]
    claims: tuple[Judged, ...]
    comparison: tuple[Compared, ...]
    drawings: tuple[Drawing, ...]
    info: Mapping[str, Any] = field(default_factory=dict)
    studies: tuple[str, ...] = ()
    story: tuple[Chapter, ...] = ()


def parse_summary(
    text: str,
    *,
    source: str,
    info: Mapping[str, Any] | None = None,
    svg: Mapping[str, str] | None = None,
) -> Summary:
    """Read a ``summary.json``.

    Args:
        text: Its content.
        source: Path to name where it is wrong.
        info: The ``run.json`` beside it.
        svg: File name, as the summary lists it, to SVG text.

    Raises:
        RunError: Where the text is not JSON or lacks a field.
    """
    try:
        return _read(json.loads(text), dict(info or {}), svg or {})
    except KeyError as lack:
        problem = f"lacks {lack}"
    except (ValueError, TypeError, AttributeError) as wrong:
        problem = str(wrong).splitlines()[0]
    raise RunError(
        f"{source} is not a readable summary ({problem}): delete its folder and run "
        "the study again"
    )


def figure_files(text: str) -> list[str]:
    """Return the SVG files that a summary lists; none where it is unreadable."""
    try:
        listed = json.loads(text)["figures"]
        names = [name for one in listed for name in one["files"]]
    except (ValueError, TypeError, KeyError):
        return []
    return [name for name in names if str(name).endswith(".svg")]


def _read(
    data: Mapping[str, Any], info: dict[str, Any], svg: Mapping[str, str]
) -> Summary:
    paper, study = data["paper"], data["study"]
    return Summary(
        paper=_text(paper, "name"),
        paper_title=_text(paper, "title"),
        authors=_text(paper, "authors"),
        year=int(paper["year"]),
        study=_text(study, "name"),
        title=_text(study, "title"),
        text=_text(study, "summary"),
        departures=tuple(str(line) for line in study.get("departures") or ()),
        scale=_text(data, "scale"),
        judged=_text(data, "judged"),
        command=_text(data, "command"),
        cost=dict(data.get("cost") or {}),
        claims=tuple(_claim(one) for one in data["claims"]),
        comparison=tuple(_compared(one) for one in data.get("comparison") or ()),
        drawings=tuple(_drawing(one, svg) for one in data.get("figures") or ()),
        info=info,
        studies=tuple(str(name) for name in paper.get("studies") or ()),
        story=tuple(_chapter(one) for one in paper.get("story") or ()),
    )


def _chapter(data: Mapping[str, Any]) -> Chapter:
    return Chapter(
        title=_text(data, "title"),
        text=_text(data, "text"),
        findings=tuple(
            Finding(
                claim=_text(one, "claim"),
                numbers=tuple(str(name) for name in one.get("numbers") or ()),
            )
            for one in data["findings"]
        ),
    )


def _claim(data: Mapping[str, Any]) -> Judged:
    return Judged(
        name=_text(data, "claim"),
        place=_text(data, "place"),
        kind=Kind(data.get("kind") or "claim"),
        statement=_text(data, "statement"),
        rival=str(data.get("rival") or ""),
        printed=str(data.get("printed") or ""),
        corrected=str(data.get("corrected") or ""),
        verdict=Outcome(data["verdict"]),
        because=_text(data, "because"),
        numbers={
            str(name): (_number(one["value"]), _number(one.get("error")))
            for name, one in (data.get("numbers") or {}).items()
        },
        rests_on=str(data.get("rests_on") or ""),
        alone=Outcome(data["alone"]) if data.get("alone") else None,
    )


def _compared(data: Mapping[str, Any]) -> Compared:
    return Compared(
        label=_text(data, "label"),
        predicted=_number(data["predicted"]),
        predicted_error=_number(data.get("predicted_error")),
        measured=_number(data["measured"]),
        error=_number(data.get("error")),
    )


def _drawing(data: Mapping[str, Any], svg: Mapping[str, str]) -> Drawing:
    files = [str(name) for name in data["files"]]
    return Drawing(
        name=_text(data, "name"),
        caption=str(data.get("caption") or ""),
        svg=next((svg[name] for name in files if name in svg), ""),
    )


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data[key]
    if not isinstance(value, str):
        raise TypeError(f"{key!r} is {type(value).__name__}, wanted text")
    return value


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} stands where a number belongs")
    return None if math.isnan(value) else float(value)

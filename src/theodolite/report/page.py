"""The page: summaries laid out for the template, and the template filled in."""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from theodolite import __version__
from theodolite.core import Kind, Outcome, SavedFigure, tally
from theodolite.report.collect import JudgedRun, latest
from theodolite.report.drawings import inline_svg
from theodolite.report.explorers import explorer_of
from theodolite.report.numbers import format_number, format_seconds
from theodolite.report.prose import to_html, to_plain
from theodolite.report.story import arrange, balance, capital, sentence, story
from theodolite.report.verdicts import panels

_MINUTE = "%Y-%m-%d %H:%M UTC"
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")


def render(runs: Iterable[JudgedRun]) -> str:
    """Return the report on these runs as one HTML page that loads nothing.

    Of several runs of a study the one judged last is shown. The same runs give the
    same page: its date is that of the last verdict.
    """
    shown = latest(runs)
    papers = _papers(shown)
    explorers = [one["explorer"] for one in papers if one["explorer"]]
    scripts = [_environment().get_template("script.js").render()]
    scripts += list(dict.fromkeys(explorer.script for explorer in explorers))
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            papers=papers,
            counts=tally(claim for run in shown for claim in run.summary.claims),
            n_papers=len({run.summary.paper.name for run in shown}),
            n_studies=len(shown),
            outcomes=list(Outcome),
            date=max((run.summary.judged for run in shown), default=""),
            version=__version__,
            style=Markup(_environment().get_template("style.css").render()),
            explorer_styles=[
                Markup(style)
                for style in dict.fromkeys(explorer.style for explorer in explorers)
            ],
            scripts=[Markup(script) for script in scripts],
            script_hashes=[_hash(script) for script in scripts],
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("theodolite.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "prose": to_html,
        "plain": to_plain,
        "number": format_number,
        "seconds": format_seconds,
        "setting": setting,
        "sentence": sentence,
        "capital": capital,
        "day": lambda stamp: stamp[:10],
    }
    return environment


def _hash(script: str) -> str:
    """Return the name by which the page's own policy allows a script and no other."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _papers(shown: list[JudgedRun]) -> list[dict[str, Any]]:
    names = _Names()
    papers = []
    for _, group in groupby(shown, key=lambda one: one.summary.paper.name):
        runs = arrange(group)
        studies = [_study(one, names) for one in runs]
        paper = runs[0].summary.paper
        papers.append(
            {
                "id": names.new(paper.name),
                "paper": paper,
                "studies": studies,
                "balance": balance(studies),
                "story": story(studies),
                "explorer": explorer_of(runs),
            }
        )
    return papers


def _study(run: JudgedRun, names: "_Names") -> dict[str, Any]:
    summary = run.summary
    name = names.new(summary.paper.name, summary.study.name)
    claims = [
        {"id": names.new(name, one.claim), "claim": one, "panels": panels(one)}
        for one in summary.claims
    ]
    return {
        "id": name,
        "run": summary,
        "paragraphs": [p for p in summary.study.summary.split("\n\n") if p.strip()],
        "claims": claims,
        "marks": [e for e in claims if e["claim"].kind is Kind.CLAIM],
        "errata": [e for e in claims if e["claim"].kind is Kind.ERRATUM],
        "beyond": [e for e in claims if e["claim"].kind is Kind.BEYOND],
        "drawings": [_drawing(run, one, name, names) for one in summary.figures],
        "config": _config(run.info),
        "cost": summary.cost,
        "origin": _origin(run.info),
    }


def _drawing(
    run: JudgedRun, figure: SavedFigure, study: str, names: "_Names"
) -> dict[str, Any]:
    place = names.new(study, "figure", figure.name)
    caption = to_plain(figure.caption) or figure.name
    label = f"{run.summary.study.title}: {caption}"
    source = f"figure {figure.name} of {run.summary.full_name}"
    text = run.drawing(figure.files)
    svg = inline_svg(text, prefix=place, label=label, source=source) if text else None
    return {"id": place, "caption": figure.caption, "svg": svg}


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


def setting(value: Any) -> str:
    """Write a value of a configuration.

    Example:
        >>> setting([2, 4, 8]), setting(True), setting(0.00001), setting(None)
        ('2, 4, 8', 'yes', '1e-05', '—')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "\u2014"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(setting(one) for one in value) or "none"
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {setting(one)}" for key, one in value.items())
    return str(value)


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


class _Names:
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

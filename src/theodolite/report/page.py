"""The page: the template filled in with what is laid out for it."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from theodolite import __version__
from theodolite.core import (
    Kind,
    Outcome,
    format_number,
    format_seconds,
    page_script,
    script_hash,
    tally,
)
from theodolite.report.collect import JudgedRun, latest
from theodolite.report.layout import lay_out
from theodolite.report.prose import to_html, to_plain
from theodolite.report.sheet import Sheet
from theodolite.report.story import capital, sentence

# Scripts of every report, in this order, the first of them shared with other pages;
# explorers bring their own.
_SHARED = ("theme", "copy")
_SCRIPTS = (*_SHARED, "narrow", "follow", "details")


def render(runs: Iterable[JudgedRun]) -> str:
    """Return the report on these runs as one HTML page that loads nothing.

    Of several runs of a study the one judged last is shown. The same runs give the
    same page: its date is that of the last verdict.
    """
    shown, sheet = latest(runs), Sheet()
    papers = lay_out(shown, sheet)
    explorers = [one["explorer"] for one in papers if one["explorer"]]
    scripts = [page_script(name) for name in _SHARED]
    scripts += [_template(f"scripts/{name}.js") for name in _SCRIPTS[len(_SHARED) :]]
    scripts += list(dict.fromkeys(explorer.script for explorer in explorers))
    styles = [_template("style.css"), _template("print.css"), sheet.css]
    styles += list(dict.fromkeys(explorer.style for explorer in explorers))
    return _template(
        "report.html.j2",
        papers=papers,
        counts=tally(claim for run in shown for claim in run.summary.claims),
        n_claims=sum(len(run.summary.claims) for run in shown),
        n_studies=len(shown),
        outcomes=list(Outcome),
        kinds=list(Kind),
        date=max((run.summary.judged for run in shown), default=""),
        version=__version__,
        shapes=sheet.shapes,
        styles=[Markup(style) for style in styles],
        scripts=[Markup(script) for script in scripts],
        script_hashes=[script_hash(script) for script in scripts],
    )


def _template(name: str, **values: Any) -> str:
    return _environment().get_template(name).render(**values)


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
        "words": lambda name: name.replace("-", " ").replace("_", " "),
        "day": lambda stamp: stamp[:10],
    }
    return environment


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

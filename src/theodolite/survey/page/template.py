"""Templates filled in: one page that loads nothing and runs its own script alone."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from theodolite import __version__
from theodolite.core import page_script, script_hash
from theodolite.survey.page.embedded import embedded
from theodolite.survey.page.numbers import count, number, seconds


def fill(name: str, content: Mapping[str, Any], data: Any) -> str:
    """Return the page that a template makes of this content.

    Args:
        name: The template.
        content: What it shows.
        data: What can be downloaded from the page.
    """
    text, packed = embedded(data)
    environment = _environment()
    own = environment.get_template("script.js").render()
    script = "\n".join((page_script("theme"), page_script("copy"), own))
    return environment.get_template(name).render(
        **content,
        data=text,
        packed=packed,
        version=__version__,
        style=Markup(environment.get_template("style.css").render()),
        script=Markup(script),
        script_hash=script_hash(script),
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("theodolite.survey.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "count": count,
        "seconds": seconds,
        "capital": _capital,
    }
    return environment


def _capital(text: str) -> str:
    """Raise the first letter alone; names further in keep theirs."""
    return text[:1].upper() + text[1:]

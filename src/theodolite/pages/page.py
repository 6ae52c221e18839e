"""A page from its template: one file that loads nothing and runs its own scripts."""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import groupby
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from theodolite import __version__
from theodolite.core import Row, norm_words

from .colours import PALETTE
from .figure_svg import SharedSvg
from .numbers import format_count, format_number, format_seconds, short_number
from .text import to_html, to_plain


def render_page(
    package: str,
    template: str,
    content: Mapping[str, Any],
    *,
    shared: SharedSvg,
    styles: Iterable[str] = (),
    scripts: Iterable[str] = (),
) -> str:
    """Return the page of a template filled with this content.

    Args:
        package: Package with the folder ``templates``; those of this package are
            found as well, ``page.html.j2`` among them, which every page extends.
        template: Name of the template.
        content: Variables of the template.
        shared: Shapes and styles that the page's drawings share.
        styles: Names of style sheets, beside ``page.css``.
        scripts: Names of scripts, beside ``page.js``.
    """
    environment = _environment(package)

    def text(name: str) -> str:
        return environment.get_template(name).render(palette=PALETTE)

    code = [_without_comments(text(name)) for name in ("page.js", *scripts)]
    sheets = [text(name) for name in ("page.css", *styles)]
    return environment.get_template(template).render(
        **content,
        version=__version__,
        shapes=shared.shapes,
        styles=[*map(Markup, sheets), shared.css],
        scripts=[(Markup(script), _script_hash(script)) for script in code],
    )


def embedded_json(content: Any) -> Markup:
    r"""Return JSON that is safe in a script element.

    Args:
        content: Strict JSON values, as ``to_dict`` gives.

    Example:
        >>> embedded_json({"title": "</script>"})
        Markup('{"title":"\\u003c/script\\u003e"}')
    """
    text = json.dumps(
        content, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def as_tables(rows: Iterable[Row]) -> list[dict[str, list[Any]]]:
    """Return rows as tables, one for each run of rows with the same columns.

    That is far shorter than one object per row, and loses nothing.

    Example:
        >>> as_tables([{"a": 1}, {"a": 3}, {"b": 5}])
        [{'columns': ['a'], 'lines': [[1], [3]]}, {'columns': ['b'], 'lines': [[5]]}]
    """
    return [
        {"columns": list(columns), "lines": [list(row.values()) for row in same]}
        for columns, same in groupby(map(dict, rows), key=tuple)
    ]


def capitalise(text: str) -> str:
    """Return a text with a capital, unless it begins with a symbol or a name.

    Example:
        >>> capitalise("the ratio"), capitalise("cond(H) is"), capitalise("n = 2")
        ('The ratio', 'cond(H) is', 'n = 2')
    """
    word = text.partition(" ")[0].rstrip(",:;")
    plain = word.isalpha() and word.isascii() and (len(word) > 1 or word == "a")
    return text[:1].upper() + text[1:] if plain else text


def sentence(text: str) -> str:
    """Write a reason as a sentence.

    Example:
        >>> sentence("the ratio is constant"), sentence("ρ = 0 there.")
        ('The ratio is constant.', 'ρ = 0 there.')
    """
    return capitalise(text) + ("" if text.endswith((".", "!", "?")) else ".")


def _format_setting(value: Any) -> str:
    """Write a value of a configuration.

    Example:
        >>> [_format_setting(value) for value in ([2, 4, 8], True, 0.00001, None)]
        ['2, 4, 8', 'yes', '1e-05', '—']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "\u2014"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(_format_setting(one) for one in value) or "none"
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_format_setting(one)}" for key, one in value.items())
    return str(value)


@cache
def _environment(package: str) -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__ or "")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "prose": to_html,
        "plain": to_plain,
        "number": format_number,
        "short": short_number,
        "count": format_count,
        "seconds": format_seconds,
        "setting": _format_setting,
        "sentence": sentence,
        "capital": capitalise,
        "norm_words": norm_words,
        "words": lambda name: name.replace("-", " ").replace("_", " "),
        "day": lambda stamp: stamp[:10],
    }
    return environment


def _without_comments(script: str) -> str:
    """Return a script without its comments and indentation."""
    lines = (line.strip() for line in script.splitlines())
    return "".join(f"{one}\n" for one in lines if one and not one.startswith("//"))


def _script_hash(script: str) -> str:
    """Return the hash by which the page's policy allows this script and no other.

    Example:
        >>> _script_hash("")
        'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"

r"""Text of a study to HTML: ``$…$`` is mathematics, `` `…` `` is code.

Everything else is escaped; ``\$`` is a dollar sign.
"""

import re
from collections.abc import Iterable

from markupsafe import Markup, escape

from theodolite.report.maths import maths_html, renderable

_PIECES = re.compile(
    r"""
    (?P<open>[(\[“‘]*)                    # glued to the formula, so that a line
    (?<!\\)\$(?P<maths>(?:\\.|[^$\\])+)\$  # does not begin with a comma
    (?P<close>[)\],.;:!?’”%]*)
    | `(?P<code>[^`]+)`
    """,
    re.VERBOSE,
)

_SHORT = 24


def to_html(text: str) -> Markup:
    """Return text as safe HTML.

    Example:
        >>> to_html("a < b, run `make`")
        Markup('a &lt; b, run <code class="whole">make</code>')
    """
    parts, end = [], 0
    for found in _PIECES.finditer(text):
        parts.append(_words(text[end : found.start()]))
        parts.append(_piece(found))
        end = found.end()
    parts.append(_words(text[end:]))
    return Markup("").join(parts)


def to_plain(text: str) -> str:
    r"""Return text without markup, for tooltips and labels.

    Example:
        >>> to_plain("the ratio $\\lambda$ of `H`")
        'the ratio \\lambda of H'
    """

    def bare(found: re.Match[str]) -> str:
        if found["code"] is not None:
            return found["code"]
        return f"{found['open']}{found['maths']}{found['close']}"

    return _PIECES.sub(bare, text).replace(r"\$", "$")


def formulas(text: str) -> list[str]:
    r"""Return the formulas in a text, without their dollar signs.

    Example:
        >>> formulas("as $n$ grows, $\\lambda$ stays")
        ['n', '\\lambda']
    """
    return [found["maths"] for found in _PIECES.finditer(text) if found["maths"]]


def unrenderable(texts: Iterable[str]) -> list[str]:
    """Return the formulas of these texts that the report could only show as source."""
    return [one for text in texts for one in formulas(text) if not renderable(one)]


def _piece(found: re.Match[str]) -> Markup:
    if found["code"] is not None:
        # Short code stays on one line: a break after the hyphens of an option misleads.
        whole = Markup(' class="whole"') if len(found["code"]) <= _SHORT else ""
        return Markup("<code{}>{}</code>").format(whole, found["code"])
    drawn = maths_html(found["maths"])
    if not found["open"] and not found["close"]:
        return drawn
    return Markup('<span class="whole">{}{}{}</span>').format(
        found["open"], drawn, found["close"]
    )


def _words(text: str) -> Markup:
    return escape(text.replace(r"\$", "$"))

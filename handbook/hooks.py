"""What is done to every page by mkdocs: formulas become MathML, which browsers draw."""

import logging
import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

# Warnings of this logger end a strict build.
log = logging.getLogger("mkdocs.hooks")
_MATHS = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL
)
_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|exc):(?=<code)")


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Turn formulas to MathML, and leave out the roles of Sphinx."""

    def drawn(match: re.Match[str]) -> str:
        latex = unescape(match[2])
        kind = "block" if match[1] == "div" else "inline"
        try:
            return convert(latex, display=kind)
        except Exception as error:  # of whatever kind: its author must hear of it
            log.warning("%s: cannot draw %s: %s", page.file.src_uri, latex, error)
            return match[0]

    return _ROLE.sub("", _MATHS.sub(drawn, html))

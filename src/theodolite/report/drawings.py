"""A saved SVG made fit to stand in a page with others.

Figures of one style share identifiers (clip paths, glyphs, groups) and a style sheet
that would reach the whole page; here each gets identifiers of its own, and keeps only
what :mod:`theodolite.report.safe_svg` allows.
"""

import re
from xml.etree import ElementTree

from markupsafe import Markup

from theodolite.report.safe_svg import keep_allowed, local, parsed

# Pixels an SVG point, as CSS has it.
_PIXELS = {"pt": 4 / 3, "px": 1.0, "": 1.0, "in": 96.0}
_LENGTH = re.compile(r"\s*(\d{1,9}(?:\.\d*)?|\.\d+)\s*(pt|px|in|)\s*", re.ASCII)


def inline_svg(text: str, *, prefix: str, label: str, source: str = "figure") -> Markup:
    """Return an SVG document as an element of an HTML page.

    Args:
        text: The document.
        prefix: What its identifiers begin with, unique in the page.
        label: What it shows, in words, for those who cannot see it.
        source: Name to give where the document is wrong.

    Raises:
        RunError: Where the text is not an SVG document.
    """
    root = parsed(text, source)
    shared = keep_allowed(root, prefix)
    _frame(root, shared, prefix, label)
    for element in root.iter():  # without namespaces, which HTML supplies by itself
        element.tag = local(element)
    return Markup(
        ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    )


def _frame(root: ElementTree.Element, shared: str, prefix: str, label: str) -> None:
    width, height = root.attrib.pop("width", ""), root.attrib.pop("height", "")
    wide, tall = _pixels(width), _pixels(height)
    if "viewBox" not in root.attrib and wide and tall:
        root.set("viewBox", f"0 0 {wide:g} {tall:g}")
    limit = f"max-width:{wide:g}px;" if wide else ""
    root.set("style", f"{limit}{shared}")
    root.set("role", "img")
    root.set("class", "drawing")
    root.set("aria-labelledby", f"{prefix}-title")
    title = ElementTree.Element("title", {"id": f"{prefix}-title"})
    title.text = label
    root.insert(0, title)


def _pixels(length: str) -> float | None:
    found = _LENGTH.fullmatch(length)
    return float(found[1]) * _PIXELS[found[2]] if found else None

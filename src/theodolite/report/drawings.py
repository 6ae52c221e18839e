"""A saved SVG made fit to stand in a page with others.

Figures of one style share identifiers (clip paths, glyphs, groups) and a style sheet
that would reach the whole page; here each gets identifiers of its own, and loses
everything that could run, load or restyle.
"""

import re
from xml.etree import ElementTree

from markupsafe import Markup

from theodolite.core import RunError

_SVG = "http://www.w3.org/2000/svg"
_HREFS = ("href", "{http://www.w3.org/1999/xlink}href")
_DROPPED = {
    "a",
    "animate",
    "foreignObject",
    "iframe",
    "metadata",
    "script",
    "set",
    "style",
    "title",
}
_REFERENCE = re.compile(r"url\(\s*['\"]?#([^'\")]+)['\"]?\s*\)")
_OUTSIDE = re.compile(r"url\(\s*['\"]?(?!#)[^)]*\)|@import", re.IGNORECASE)
_EVERYWHERE = re.compile(r"\*\s*\{([^{}]*)\}")
# Pixels an SVG point, as CSS has it.
_PIXELS = {"pt": 4 / 3, "px": 1.0, "": 1.0, "in": 96.0}
_LENGTH = re.compile(r"\s*([0-9.]+)\s*(pt|px|in|)\s*")


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
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as wrong:
        raise RunError(
            f"{source} is not a readable SVG ({wrong}): run the study again"
        ) from None
    if _local(root) != "svg":
        raise RunError(
            f"{source} is not an SVG: its root is <{_local(root)}>; run the study again"
        )
    shared = _shared_style(root)
    _strip(root)
    for element in root.iter():
        _own(element, prefix)
    _frame(root, shared, prefix, label)
    return Markup(_written(root))


def _local(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _shared_style(root: ElementTree.Element) -> str:
    """Collect what a style sheet says of every element; they inherit it instead."""
    sheets = [one.text or "" for one in root.iter() if _local(one) == "style"]
    rules = [rule.strip(" ;") for text in sheets for rule in _EVERYWHERE.findall(text)]
    return ";".join(rule for rule in rules if not _OUTSIDE.search(rule))


def _strip(element: ElementTree.Element) -> None:
    for child in list(element):
        if _local(child) in _DROPPED:
            element.remove(child)
        else:
            _strip(child)
    element.text = (element.text or "").strip() or None
    element.tail = None


def _own(element: ElementTree.Element, prefix: str) -> None:
    for name, value in list(element.attrib.items()):
        if name == "id":
            element.set(name, f"{prefix}-{value}")
        elif name in _HREFS:
            del element.attrib[name]
            if value.startswith("#"):
                element.set("href", f"#{prefix}-{value[1:]}")
            elif value.startswith("data:image/png;base64,"):
                element.set("href", value)
        elif name.lower().startswith("on") or _OUTSIDE.search(value):
            del element.attrib[name]
        elif "url(" in value:
            element.set(name, _REFERENCE.sub(rf"url(#{prefix}-\1)", value))


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
    title = ElementTree.Element(f"{{{_SVG}}}title", {"id": f"{prefix}-title"})
    title.text = label
    root.insert(0, title)


def _pixels(length: str) -> float | None:
    found = _LENGTH.fullmatch(length)
    return float(found[1]) * _PIXELS[found[2]] if found else None


def _written(root: ElementTree.Element) -> str:
    """Write the tree without namespaces, which HTML supplies by itself."""
    for element in root.iter():
        element.tag = _local(element)
        for name in [name for name in element.attrib if name.startswith("{")]:
            del element.attrib[name]
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)

"""The elements and attributes that a page accepts from an SVG file.

Everything else is left out: scripts, style sheets, links, animation, embedded HTML,
event handlers, classes, and every address except that of a part of the same drawing
or of pixels within it.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from theodolite.core import RunError

_SVG = "{http://www.w3.org/2000/svg}"
_HREFS = ("href", "{http://www.w3.org/1999/xlink}href")
# Figures are some ten elements deep; what reads a tree goes down by recursion.
_DEEPEST = 100

_ELEMENTS = frozenset(
    "circle clipPath defs ellipse g image line linearGradient path polygon polyline "
    "radialGradient rect stop svg text tspan use".split()
)
_WITH_TEXT = frozenset({"text", "tspan"})
_PROPERTIES = frozenset(
    "clip-path clip-rule color dominant-baseline fill fill-opacity fill-rule font "
    "font-family font-size font-style font-variant font-weight image-rendering opacity "
    "shape-rendering stop-color stop-opacity stroke stroke-dasharray stroke-dashoffset "
    "stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width "
    "text-anchor text-rendering vector-effect".split()
)
_GEOMETRY = frozenset(
    "clipPathUnits cx cy d dx dy fx fy gradientTransform gradientUnits height offset "
    "points preserveAspectRatio r rotate rx ry spreadMethod textLength transform "
    "viewBox width x x1 x2 y y1 y2".split()
)
_FUNCTIONS = frozenset(
    {"rgb", "rgba", "hsl", "hsla"}
    | {"matrix", "translate", "scale", "rotate", "skewX", "skewY"}
)
_CALL = re.compile(r"([^\s,;:()]*)\s*\(")
_PART = re.compile(r"url\(\s*(['\"]?)#([\w.:-]+)\1\s*\)")
_NAME = re.compile(r"[\w.:-]+")
_PIXELS = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=\s]*")
_EVERYWHERE = re.compile(r"\*\s*\{([^{}]*)\}")


def parse_svg(text: str, source: str) -> ElementTree.Element:
    """Return the root of an SVG document.

    Args:
        text: The document.
        source: Name to give in an error.

    Raises:
        RunError: It is no SVG, declares entities, or is nested too deep.
    """
    parser = ElementTree.XMLParser(target=_Shallow())
    try:
        if "<!ENTITY" in text:
            raise ValueError("it declares entities")
        parser.feed(text)
        root = parser.close()
    except (ElementTree.ParseError, ValueError, LookupError) as wrong:
        raise RunError(
            f"{source} is not a readable SVG ({wrong}): draw it again with "
            "`theodolite repair`"
        ) from None
    if local(root) != "svg":
        raise RunError(
            f"{source} is not an SVG: its root is <{local(root)[:40]}>; draw it again "
            "with `theodolite repair`"
        )
    return root


class _Shallow(ElementTree.TreeBuilder):
    """Builds a tree, and refuses one that is nested deeper than any drawing."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def start(self, tag: str, attrs: dict[str, str]) -> ElementTree.Element:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(f"its elements are nested more than {_DEEPEST} deep")
        return super().start(tag, attrs)

    def end(self, tag: str) -> ElementTree.Element:
        self._depth -= 1
        return super().end(tag)


def local(element: ElementTree.Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def keep_allowed(root: ElementTree.Element, prefix: str) -> str:
    """Strip a drawing in place, and give its identifiers a prefix.

    Args:
        root: The ``svg`` element.
        prefix: What identifiers begin with, unique in the page.

    Returns:
        The style that its style sheets give to every element, for the root.
    """
    shared = _shared_style(root)
    _strip(root)
    _drop_copies_of_copies(root)
    for element in root.iter():
        kept = dict(_attributes(element, prefix))
        element.attrib.clear()
        element.attrib.update(kept)
    return shared


def _shared_style(root: ElementTree.Element) -> str:
    sheets = [one.text or "" for one in root.iter() if local(one) == "style"]
    rules = [rule for sheet in sheets for rule in _EVERYWHERE.findall(sheet)]
    return ";".join(filter(None, (_declarations(rule, "") for rule in rules)))


def _strip(element: ElementTree.Element) -> None:
    for child in list(element):
        foreign = child.tag != f"{_SVG}{local(child)}" and child.tag != local(child)
        if foreign or local(child) not in _ELEMENTS or local(child) == "svg":
            element.remove(child)
        else:
            _strip(child)
    text = (element.text or "").strip() if local(element) in _WITH_TEXT else ""
    element.text, element.tail = text or None, None


def _drop_copies_of_copies(root: ElementTree.Element) -> None:
    """Remove each copy of what holds copies: ten levels would fill the memory."""
    copying = {
        part.get("id")
        for part in root.iter()
        if any(local(inner) == "use" for inner in part.iter())
    }
    for parent in list(root.iter()):
        for child in list(parent):
            if local(child) == "use" and _target(child) in copying:
                parent.remove(child)


def _target(element: ElementTree.Element) -> str | None:
    address = next((element.get(name) for name in _HREFS if element.get(name)), None)
    return address[1:] if address and address.startswith("#") else None


def _attributes(element: ElementTree.Element, prefix: str) -> Iterator[tuple[str, str]]:
    target = _target(element)
    if target is not None and _NAME.fullmatch(target):
        yield "href", f"#{prefix}-{target}"
    for name, value in element.attrib.items():
        if name == "id" and _NAME.fullmatch(value):
            yield name, f"{prefix}-{value}"
        elif name == "style":
            if kept := _declarations(value, prefix):
                yield name, kept
        elif name in _HREFS and local(element) == "image":
            if _PIXELS.fullmatch(value):
                yield "href", value
        elif name in _GEOMETRY or name in _PROPERTIES:
            if (safe := _value(value, prefix)) is not None:
                yield name, safe


def _declarations(text: str, prefix: str) -> str:
    """Return the declarations of a style that are on the list."""
    kept = []
    for declaration in text.split(";"):
        name, _, value = declaration.partition(":")
        safe = _value(value.strip(), prefix)
        if name.strip() in _PROPERTIES and safe:
            kept.append(f"{name.strip()}: {safe}")
    return ";".join(kept)


def _value(text: str, prefix: str) -> str | None:
    """Return a value with its references renamed; None if it could load something."""
    if any(sign in text for sign in "\\@{}<>") or "/*" in text:
        return None
    if any(name not in _FUNCTIONS for name in _CALL.findall(_PART.sub("", text))):
        return None
    return _PART.sub(rf"url(#{prefix}-\2)", text)

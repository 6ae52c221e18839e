"""A saved SVG made fit to stand in a page with others, in few bytes.

Figures of one style share letters, marks and looks: they come to stand in the page's
:class:`~theodolite.report.sheet.Sheet`, once. What is left of each figure keeps only
what :mod:`theodolite.report.safe_svg` allows, with identifiers of its own.
"""

import re
from xml.etree import ElementTree

from markupsafe import Markup

from theodolite.report.safe_svg import keep_allowed, local, parsed
from theodolite.report.sheet import Follow, Sheet

# Pixels an SVG point, as CSS has it.
_PIXELS = {"pt": 4 / 3, "px": 1.0, "": 1.0, "in": 96.0}
_LENGTH = re.compile(r"\s*(\d{1,9}(?:\.\d*)?|\.\d+)\s*(pt|px|in|)\s*", re.ASCII)
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_SHIFT = re.compile(r"translate\(([-\d.e]+)[\s,]+([-\d.e]+)\)", re.ASCII)
_ROUNDED = ("d", "x", "y", "cx", "cy", "points", "x1", "x2", "y1", "y2")
_HREF = "href"
_REFERENCE = re.compile(r"#([\w.:-]+)")
# So many fills with a hue are no series but a scale of values.
_SERIES = 12
_FILL = re.compile(r"fill: (#[0-9a-f]{6})")


def inline_svg(
    text: str, *, sheet: Sheet, prefix: str, label: str, source: str = "figure"
) -> Markup:
    """Return an SVG document as an element of an HTML page.

    Args:
        text: The document.
        sheet: Where the page keeps what its drawings share.
        prefix: What its identifiers begin with, unique in the page.
        label: What it shows, in words, for those who cannot see it.
        source: Name to give where the document is wrong.

    Raises:
        RunError: Where the text is not an SVG document.
    """
    root = parsed(text, source)
    shared = keep_allowed(root, prefix)
    for element in root.iter():  # without namespaces, which HTML supplies by itself
        element.tag = local(element)
        _round(element)
    _share_shapes(root, sheet)
    _rename(root, prefix)
    _style(root, sheet)
    _unwrap(root)
    _frame(root, shared, prefix, label)
    return Markup(
        ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    )


def _round(element: ElementTree.Element) -> None:
    """Write places to a hundredth of a point, in as few letters as will do."""
    attributes = element.attrib
    if element.tag == "use" and (
        moved := _SHIFT.fullmatch(attributes.get("transform", ""))
    ):
        x, y = (
            float(moved[place]) + float(attributes.get(name) or 0)
            for place, name in ((1, "x"), (2, "y"))
        )
        del attributes["transform"]
        attributes.update(x=f"{x}", y=f"{y}")
    for name in _ROUNDED:
        if name in attributes:
            attributes[name] = _short(attributes[name])
    for name in ("x", "y"):
        if element.tag == "use" and attributes.get(name) == "0":
            del attributes[name]


def _short(places: str) -> str:
    rounded = _NUMBER.sub(lambda one: f"{round(float(one[0]), 2) + 0.0:.12g}", places)
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", " ".join(rounded.split()))


def _share_shapes(root: ElementTree.Element, sheet: Sheet) -> None:
    """Let copies refer to the page's shapes, and drop the drawing's own."""
    names: dict[str, str] = {}
    styles: dict[str, list[set[str]]] = {}
    for use in root.iter("use"):
        styles.setdefault(use.get(_HREF, "")[1:], []).append(_declared(use))
    for parent in list(root.iter()):
        for child in list(parent) if parent.tag == "defs" else ():
            if child.tag == "path" and "id" in child.attrib:
                name = child.attrib.pop("id")
                if all(_declared(child) <= one for one in styles.get(name, [])):
                    child.attrib.pop("style", None)  # every copy says the same itself
                _classed(child, sheet)
                if not any("url(" in one for one in child.attrib.values()):
                    names[name] = sheet.shape(child.attrib)
                    parent.remove(child)
                else:
                    child.set("id", name)
    for element in root.iter("use"):
        name = element.get(_HREF, "").lstrip("#")
        if name in names:
            element.set(_HREF, f"#{names[name]}")


def _declared(element: ElementTree.Element) -> set[str]:
    return set(element.get("style", "").split(";")) - {""}


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Give short names to what the drawing refers to, and none to the rest."""
    referring = [
        (element, name)
        for element in root.iter()
        for name, value in element.attrib.items()
        if "#" in value and (name == _HREF or "url(" in value)
    ]
    told = {
        one for at, name in referring for one in _REFERENCE.findall(at.attrib[name])
    }
    own = [element for element in root.iter() if element.get("id") in told]
    short = {one.attrib["id"]: f"{prefix}-{n}" for n, one in enumerate(own)}
    for element in root.iter():
        if (name := element.attrib.pop("id", None)) in short:
            element.set("id", short[name])
    for element, name in referring:
        element.attrib[name] = _REFERENCE.sub(
            lambda found: f"#{short.get(found[1], found[1])}", element.attrib[name]
        )


def _style(root: ElementTree.Element, sheet: Sheet) -> None:
    """Put all styles in the sheet; where pixels or a scale are shown, data keep theirs.

    Pixels keep their colours, so what lies on them must, and the legend beside them.
    """
    fills = set(_FILL.findall(ElementTree.tostring(root, "unicode")))
    pictured = len(fills) > _SERIES or root.find(".//image") is not None
    _style_below(root, sheet, follow="inks" if pictured else "all")


def _style_below(element: ElementTree.Element, sheet: Sheet, follow: Follow) -> None:
    if follow == "inks" and "clip-path" in element.attrib:
        follow = "none"
    _classed(element, sheet, follow)
    for child in element:
        _style_below(child, sheet, follow)


def _classed(
    element: ElementTree.Element, sheet: Sheet, follow: Follow = "all"
) -> None:
    """Put a style in the sheet, unless it refers to a part of its drawing."""
    style = element.get("style")
    if style and "url(" not in style:
        del element.attrib["style"]
        element.set("class", sheet.style(style, follow=follow))


def _unwrap(element: ElementTree.Element) -> None:
    """Take groups that say nothing out of the tree, and empty ones with them."""
    kept: list[ElementTree.Element] = []
    for child in element:
        _unwrap(child)
        if child.tag in ("g", "defs") and not len(child):
            continue
        kept += list(child) if child.tag == "g" and not child.attrib else [child]
    element[:] = kept


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

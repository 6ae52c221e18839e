"""Embed a saved figure in a page.

Figures of one style share letters, marks and looks: the page keeps each of them once,
in :class:`SharedSvg`. What is left of a figure keeps only what
:mod:`theodolite.pages.svg_allowlist` allows, with identifiers that no other has.
"""

import re
from typing import Literal
from xml.etree import ElementTree

from markupsafe import Markup

from .colours import is_text_or_paper, light_or_dark
from .svg_allowlist import keep_allowed, local, parse_svg

# Pixels of a unit of length, as in CSS.
_PIXELS = {"pt": 4 / 3, "px": 1.0, "": 1.0, "in": 96.0}
_LENGTH = re.compile(r"\s*(\d{1,9}(?:\.\d*)?|\.\d+)\s*(pt|px|in|)\s*", re.ASCII)
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_SHIFT = re.compile(r"translate\(([-\d.e]+)[\s,]+([-\d.e]+)\)", re.ASCII)
_ROUNDED = ("d", "x", "y", "cx", "cy", "points", "x1", "x2", "y1", "y2")
_HREF = "href"
_REFERENCE = re.compile(r"#([\w.:-]+)")
# More coloured fills than this are a colour scale, not series.
_SERIES = 12
_FILL = re.compile(r"fill: (#[0-9a-f]{6})")
_COLOURED = ("fill", "stroke", "stop-color", "color")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"

# Which colours change from a light page to a dark one: all of them, those of text and
# paper only, or none, if they encode values.
Follow = Literal["all", "text", "none"]


class SharedSvg:
    """Shapes and styles shared by the drawings of one page."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[tuple[str, str], ...], str] = {}
        self._styles: dict[str, str] = {}
        self._groups: dict[Markup, str] = {}
        self._drawings = 0

    def prefix(self) -> str:
        """Return the prefix of the identifiers of one more drawing."""
        self._drawings += 1
        return f"f-{_name(self._drawings - 1)}"

    def shape(self, attributes: dict[str, str]) -> str:
        """Return the identifier of a path with these attributes."""
        key = tuple(sorted(attributes.items()))
        return self._shapes.setdefault(key, f"s-{_name(len(self._shapes))}")

    def group(self, inside: str) -> str:
        """Return the identifier of a group that holds this."""
        return self._groups.setdefault(Markup(inside), f"g-{_name(len(self._groups))}")

    def inherited(self, look: str) -> bool:
        """Return whether children look the same if their group has this class."""
        rule = next(rule for rule, name in self._styles.items() if name == look)
        return not re.search(r"(^|;)opacity:", rule)

    def style(self, declarations: str, *, follow: Follow = "all") -> str:
        """Return the class of a style.

        Args:
            declarations: Declarations that are safe in a style sheet.
            follow: Which colours change from a light page to a dark one.
        """
        pairs = (one.partition(":") for one in declarations.split(";"))
        rule = ";".join(
            _declaration(name.strip(), value.strip(), follow)
            for name, colon, value in pairs
            if colon
        )
        return self._styles.setdefault(rule, f"d-{_name(len(self._styles))}")

    @property
    def css(self) -> Markup:
        """The style sheet of all drawings."""
        return Markup("\n".join(f".{n}{{{rule}}}" for rule, n in self._styles.items()))

    @property
    def shapes(self) -> Markup:
        """All shapes, for a drawing that is not shown."""
        parts = []
        for key, name in self._shapes.items():
            pairs = Markup("").join(Markup(' {}="{}"').format(*pair) for pair in key)
            parts.append(Markup('<path id="{}"{}/>').format(name, pairs))
        for inside, name in self._groups.items():
            parts.append(Markup('<g id="{}">{}</g>').format(name, inside))
        return Markup("\n").join(parts)


def inline_svg(
    text: str, *, shared: SharedSvg, label: str, source: str = "figure"
) -> Markup:
    """Return an SVG document as an element of an HTML page.

    Args:
        text: The document.
        shared: Shapes and styles that the page's drawings share.
        label: Description of the drawing, for screen readers.
        source: Name to give in an error.

    Raises:
        RunError: The text is not an SVG document.
    """
    root, prefix = parse_svg(text, source), shared.prefix()
    inherited = keep_allowed(root, prefix)
    for element in root.iter():  # without namespaces, which HTML supplies by itself
        element.tag = local(element)
        _round(element)
    _share_shapes(root, shared)
    _rename(root, prefix)
    # Pixels keep their colours, so what lies on them must, and the legend beside them.
    fills = set(_FILL.findall(ElementTree.tostring(root, "unicode")))
    pictured = len(fills) > _SERIES or root.find(".//image") is not None
    _share_styles(root, shared, "text" if pictured else "all")
    _unwrap(root)
    _gather(root, shared)
    _frame(root, inherited, prefix, label)
    return Markup(
        ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    )


def _declaration(name: str, value: str, follow: Follow) -> str:
    """Return a declaration, followed by one that newer browsers prefer."""
    plain = f"{name}:{value}"
    stays = follow == "none" or (follow == "text" and not is_text_or_paper(value))
    if name not in _COLOURED or stays or (both := light_or_dark(value)) == value:
        return plain
    return f"{plain};{name}:{both}"


def _name(place: int) -> str:
    """Return a short name for a number, in letters and digits."""
    name = ""
    while True:
        place, last = divmod(place, len(_LETTERS))
        name = _LETTERS[last] + name
        if not place:
            return name


def _round(element: ElementTree.Element) -> None:
    """Write places to a tenth of a point, in as few letters as possible."""
    attributes = element.attrib
    if element.tag == "use" and (
        moved := _SHIFT.fullmatch(attributes.get("transform", ""))
    ):
        del attributes["transform"]
        for place, name in ((1, "x"), (2, "y")):
            shift = float(moved[place]) + float(attributes.get(name) or 0)
            attributes[name] = f"{shift}"
    for name in _ROUNDED:
        if name in attributes:
            attributes[name] = _short(attributes[name])
    if "transform" in attributes:
        # Scales of letters are small numbers by which large ones are multiplied.
        attributes["transform"] = _short(attributes["transform"], 5)
    for name in ("x", "y"):
        if element.tag == "use" and attributes.get(name) == "0":
            del attributes[name]


def _short(places: str, digits_below_one: int = 2) -> str:
    def rounded(match: re.Match[str]) -> str:
        value = float(match[0])
        digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else digits_below_one
        return f"{round(value, digits) + 0.0:.12g}"

    return re.sub(
        r"\s*([A-Za-z])\s*", r"\1", " ".join(_NUMBER.sub(rounded, places).split())
    )


def _share_shapes(root: ElementTree.Element, shared: SharedSvg) -> None:
    """Let copies refer to the page's shapes, and drop the drawing's own."""
    names: dict[str, str] = {}
    styles: dict[str, list[set[str]]] = {}
    for use in root.iter("use"):
        styles.setdefault(use.get(_HREF, "")[1:], []).append(_declared(use))
    for parent in list(root.iter("defs")):
        for child in list(parent):
            if child.tag != "path" or "id" not in child.attrib:
                continue
            name = child.attrib.pop("id")
            if all(_declared(child) <= one for one in styles.get(name, [])):
                child.attrib.pop("style", None)  # every copy says the same itself
            _share_style(child, shared, "all")
            if any("url(" in one for one in child.attrib.values()):
                child.set("id", name)
            else:
                names[name] = shared.shape(child.attrib)
                parent.remove(child)
    for use in root.iter("use"):
        if (name := use.get(_HREF, "").lstrip("#")) in names:
            use.set(_HREF, f"#{names[name]}")


def _declared(element: ElementTree.Element) -> set[str]:
    return set(element.get("style", "").split(";")) - {""}


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Give short identifiers to referenced elements; remove all other identifiers."""
    referring = [
        (element, name)
        for element in root.iter()
        for name, value in element.attrib.items()
        if "#" in value and (name == _HREF or "url(" in value)
    ]
    used = {
        one for at, name in referring for one in _REFERENCE.findall(at.attrib[name])
    }
    own = [element for element in root.iter() if element.get("id") in used]
    short = {one.attrib["id"]: f"{prefix}-{n}" for n, one in enumerate(own)}
    for element in root.iter():
        if (name := element.attrib.pop("id", None)) in short:
            element.set("id", short[name])
    for element, name in referring:
        element.attrib[name] = _REFERENCE.sub(
            lambda match: f"#{short.get(match[1], match[1])}", element.attrib[name]
        )


def _share_styles(
    element: ElementTree.Element, shared: SharedSvg, follow: Follow
) -> None:
    """Make classes of all styles; beside pixels, what is clipped keeps its colours."""
    if follow == "text" and "clip-path" in element.attrib:
        follow = "none"
    _share_style(element, shared, follow)
    for child in element:
        _share_styles(child, shared, follow)


def _share_style(
    element: ElementTree.Element, shared: SharedSvg, follow: Follow
) -> None:
    """Make a class of a style, unless it refers to a part of its drawing."""
    style = element.get("style")
    if style and "url(" not in style:
        del element.attrib["style"]
        element.set("class", shared.style(style, follow=follow))


def _unwrap(element: ElementTree.Element) -> None:
    """Remove groups that are empty, and unwrap groups without attributes."""
    kept: list[ElementTree.Element] = []
    for child in element:
        _unwrap(child)
        if child.tag in ("g", "defs") and not len(child):
            continue
        kept += list(child) if child.tag == "g" and not child.attrib else [child]
    element[:] = kept


def _gather(element: ElementTree.Element, shared: SharedSvg) -> None:
    """Say what children have in common once: a look in their group, a word per page."""
    for child in element:
        _gather(child, shared)
    looks = {child.get("class", "") for child in element}
    copies = all(child.tag == "use" and not len(child) for child in element)
    if element.tag != "g" or len(element) < 2 or not copies:
        return
    (look, *others) = looks
    if look and not others and not element.get("class") and shared.inherited(look):
        element.set("class", look)
        for child in element:
            del child.attrib["class"]
    if all(_is_letter(child) for child in element):
        word = "".join(ElementTree.tostring(child, "unicode") for child in element)
        element[:] = [ElementTree.Element("use", {_HREF: f"#{shared.group(word)}"})]


def _is_letter(use: ElementTree.Element) -> bool:
    """Return whether a copy is of a shape of the page, on the line of its word."""
    return use.get(_HREF, "").startswith("#s-") and set(use.attrib) <= {_HREF, "x"}


def _frame(root: ElementTree.Element, inherited: str, prefix: str, label: str) -> None:
    width, height = root.attrib.pop("width", ""), root.attrib.pop("height", "")
    wide, tall = _pixels(width), _pixels(height)
    if "viewBox" not in root.attrib and wide and tall:
        root.set("viewBox", f"0 0 {wide:g} {tall:g}")
    limit = f"max-width:{wide:g}px;" if wide else ""
    root.attrib |= {
        "style": f"{limit}{inherited}",
        "role": "img",
        "class": "drawing",
        "aria-labelledby": f"{prefix}-title",
    }
    title = ElementTree.Element("title", {"id": f"{prefix}-title"})
    title.text = label
    root.insert(0, title)


def _pixels(length: str) -> float | None:
    match = _LENGTH.fullmatch(length)
    return float(match[1]) * _PIXELS[match[2]] if match else None

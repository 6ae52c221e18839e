"""Formulas as MathML, which browsers draw and read out by themselves."""

import re
from functools import lru_cache
from itertools import groupby, pairwise
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markupsafe import Markup

_SPACE = "{http://www.w3.org/1998/Math/MathML}"
# Elements of MathML Core, with the number of children that each must have.
_CHILDREN: dict[str, int | None] = {
    **dict.fromkeys(("math", "mrow", "mstyle", "msqrt", "mtable", "mtr", "mtd"), None),
    **dict.fromkeys(("mpadded", "mphantom", "menclose"), None),
    **dict.fromkeys(("mi", "mn", "mo", "mtext", "mspace"), 0),
    **dict.fromkeys(("mfrac", "mroot", "msub", "msup", "munder", "mover"), 2),
    **dict.fromkeys(("msubsup", "munderover"), 3),
}
_KEPT = frozenset(
    "accent accentunder columnalign columnspacing displaystyle fence form lspace "
    "linethickness mathvariant maxsize minsize movablelimits rowspacing rspace "
    "scriptlevel stretchy width".split()
)
# LaTeX that the converter does not know, in words that it does.
_ALIASES = {
    r"\arg": r"\operatorname{arg}",
    r"\argmin": r"\operatorname{arg\,min}",
    r"\argmax": r"\operatorname{arg\,max}",
    r"\!": "",
}
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|!)")
# The converter raises the last of a binomial's parts alone unless it is one group.
_GROUP = r"\{(?:[^{}]|\{[^{}]*\})*\}"
_BINOMIAL = re.compile(rf"\\[td]?binom\s*{_GROUP}\s*{_GROUP}")
# What a source escapes in text, where the converter writes it as it came.
_ESCAPED = re.compile(r"\\[{}%$#&_|\\]|\\[A-Za-z]+")
# Signs that TeX sets without space: a bar is no operator between two terms.
_CLOSE = frozenset("|\u2016\u2223\u2225/\u2202")
_SIGNS, _ENDS = frozenset("-+\u2212\u00b1\u2213"), frozenset(")]}|\u2016!\u232a\u27e9")
_ARROWS = re.compile("[\u2190-\u21ff\u27f0-\u27ff]")


def renderable(latex: str) -> bool:
    r"""Whether a formula can be set; the report shows its source otherwise.

    Args:
        latex: The formula, without dollar signs.

    Example:
        >>> renderable(r"\sqrt{x} \le 2"), renderable(r"\unknown{x}")
        (True, False)
    """
    return formula(latex) is not None


def maths_html(latex: str) -> Markup:
    """Return a formula as MathML, its source beside it for those who copy or search.

    What cannot be set comes back as its LaTeX source in ``<code>``.
    """
    found = formula(latex)
    if found is None:
        return Markup('<code class="latex">{}</code>').format(latex)
    return Markup('<math alttext="{}">{}</math>').format(latex, Markup(found))


@lru_cache(maxsize=4096)
def formula(latex: str) -> str | None:
    """Return the inside of a formula's ``<math>``, or None if it cannot be set."""
    bare = _ESCAPED.sub("", latex)
    if not latex.strip() or bare.count("{") != bare.count("}"):
        return None
    try:
        root = ElementTree.fromstring(convert(_said(latex)))
        if not all(_known(element) for element in root.iter()):
            return None
        _tidy(root)
    except Exception:  # whatever the parser dislikes has one answer: show the source
        return None
    while len(root) == 1 and root[0].tag == "mrow":
        root[:] = list(root[0])
    inside = [ElementTree.tostring(child, encoding="unicode") for child in root]
    return "".join(inside) or None


def _said(latex: str) -> str:
    """Say in the converter's words what LaTeX says in its own."""
    told = _COMMAND.sub(lambda found: _ALIASES.get(found[0], found[0]), latex)
    return _BINOMIAL.sub(lambda found: f"{{{found[0]}}}", told)


def _known(element: ElementTree.Element) -> bool:
    """Whether an element is of MathML, whole, and free of unread commands."""
    name = str(element.tag).removeprefix(_SPACE)
    if name not in _CHILDREN or "\\" in (element.text or ""):
        return False
    wanted = _CHILDREN[name]
    return wanted is None or len(element) == wanted


def _tidy(element: ElementTree.Element) -> None:
    """Leave the name, the attributes that are drawn, and as few rows as will do."""
    element.tag = str(element.tag).removeprefix(_SPACE)
    for name in set(element.attrib) - _KEPT:
        del element.attrib[name]
    if element.tag == "mi" and _ARROWS.fullmatch(element.text or ""):
        element.tag = "mo"
    if element.tag == "mo" and element.text in _CLOSE and "form" not in element.attrib:
        element.attrib.update(lspace="0", rspace="0")
    for child in element:
        _tidy(child)
    for before, child in pairwise(element):
        if _is_sign(before, child):
            child.set("form", "prefix")
    element[:] = [_single(child) for child in _words(list(element))]


def _is_sign(before: ElementTree.Element, child: ElementTree.Element) -> bool:
    """Whether a minus belongs to what follows: it stands after an operator."""
    after_operator = before.tag == "mo" and before.text not in _ENDS
    return after_operator and child.tag == "mo" and child.text in _SIGNS


def _single(element: ElementTree.Element) -> ElementTree.Element:
    """Return the only child of a row that holds one, else the element."""
    alone = element.tag == "mrow" and len(element) == 1 and not element.attrib
    return element[0] if alone else element


def _words(children: list[ElementTree.Element]) -> list[ElementTree.Element]:
    """Join upright letters that follow one another: a name is one identifier."""
    found: list[ElementTree.Element] = []
    for upright, letters in groupby(children, key=_upright):
        group = list(letters)
        if upright and len(group) > 1:
            word = ElementTree.Element("mi")
            word.text = "".join(letter.text or "" for letter in group)
            group = [word]
        found += group
    return found


def _upright(element: ElementTree.Element) -> bool:
    return element.tag == "mi" and element.get("mathvariant") == "normal"

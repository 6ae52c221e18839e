r"""Text with formulas to HTML: ``$…$`` is mathematics, `` `…` `` is code.

Everything else is escaped; ``\$`` is a dollar sign. Formulas become MathML, which
browsers draw and read out by themselves.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby, pairwise
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markupsafe import Markup, escape

_PIECES = re.compile(
    r"""
    (?P<open>[(\[“‘]*)                    # glued to the formula, so that a line
    (?<!\\)\$(?P<maths>(?:\\.|[^$\\])+)\$  # does not begin with a comma
    (?P<close>[)\],.;:!?’”%]*)
    | `(?P<code>[^`]+)`
    """,
    re.VERBOSE,
)
# Code up to this length is kept on one line.
_SHORT = 24

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
# LaTeX commands that the converter does not know, with replacements.
_ALIASES = {
    r"\arg": r"\operatorname{arg}",
    r"\argmin": r"\operatorname{arg\,min}",
    r"\argmax": r"\operatorname{arg\,max}",
    r"\!": "",
}
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|!)")
# The converter puts a power on a binomial's last part only, unless it is grouped.
_GROUP = r"\{(?:[^{}]|\{[^{}]*\})*\}"
_BINOMIAL = re.compile(rf"\\[td]?binom\s*{_GROUP}\s*{_GROUP}")
# What a source escapes in text, where the converter writes it as it came.
_ESCAPED = re.compile(r"\\[{}%$#&_|\\]|\\[A-Za-z]+")
# Signs that TeX sets without space: a bar is no operator between two terms.
_CLOSE = frozenset("|\u2016\u2223\u2225/\u2202")
_SIGNS, _ENDS = frozenset("-+\u2212\u00b1\u2213"), frozenset(")]}|\u2016!\u232a\u27e9")
_ARROWS = re.compile("[\u2190-\u21ff\u27f0-\u27ff]")


def to_html(text: str) -> Markup:
    """Return text as safe HTML.

    Example:
        >>> to_html("a < b, run `make`")
        Markup('a &lt; b, run <code class="whole">make</code>')
    """
    parts, end = [], 0
    for match in _PIECES.finditer(text):
        parts += [_escaped(text[end : match.start()]), _piece(match)]
        end = match.end()
    parts.append(_escaped(text[end:]))
    return Markup("").join(parts)


def to_plain(text: str) -> str:
    r"""Return text without markup, for tooltips and labels.

    Example:
        >>> to_plain("the ratio $\\lambda$ of `H`")
        'the ratio \\lambda of H'
    """

    def bare(match: re.Match[str]) -> str:
        formula = f"{match['open']}{match['maths']}{match['close']}"
        return formula if match["code"] is None else match["code"]

    return _PIECES.sub(bare, text).replace(r"\$", "$")


def formulas(text: str) -> list[str]:
    r"""Return the formulas in a text, without their dollar signs.

    Example:
        >>> formulas("as $n$ grows, $\\lambda$ stays")
        ['n', '\\lambda']
    """
    return [match["maths"] for match in _PIECES.finditer(text) if match["maths"]]


def unrenderable(texts: Iterable[str]) -> list[str]:
    """Return the formulas in these texts that a page could only show as source."""
    return [one for text in texts for one in formulas(text) if formula(one) is None]


def maths_html(latex: str) -> Markup:
    """Return a formula as MathML with its source, or its source if it cannot be set."""
    inside = formula(latex)
    if inside is None:
        return Markup('<code class="latex">{}</code>').format(latex)
    return Markup('<math alttext="{}">{}</math>').format(latex, Markup(inside))


@lru_cache(maxsize=4096)
def formula(latex: str) -> str | None:
    """Return the inside of a formula's ``<math>``, or None if it cannot be set."""
    bare = _ESCAPED.sub("", latex)
    if not latex.strip() or bare.count("{") != bare.count("}"):
        return None
    try:
        root = ElementTree.fromstring(convert(_translated(latex)))
        if not all(_known(element) for element in root.iter()):
            return None
        _tidy(root)
    except Exception:  # if the parser fails, the page shows the source
        return None
    while len(root) == 1 and root[0].tag == "mrow":
        root[:] = list(root[0])
    inside = [ElementTree.tostring(child, encoding="unicode") for child in root]
    return "".join(inside) or None


def _piece(match: re.Match[str]) -> Markup:
    if match["code"] is not None:
        # Short code stays on one line: a break after the hyphens of an option misleads.
        whole = Markup(' class="whole"') if len(match["code"]) <= _SHORT else ""
        return Markup("<code{}>{}</code>").format(whole, match["code"])
    drawn = maths_html(match["maths"])
    if not match["open"] and not match["close"]:
        return drawn
    return Markup('<span class="whole">{}{}{}</span>').format(
        match["open"], drawn, match["close"]
    )


def _escaped(text: str) -> Markup:
    return escape(text.replace(r"\$", "$"))


def _translated(latex: str) -> str:
    """Replace commands that the converter does not know."""
    known = _COMMAND.sub(lambda match: _ALIASES.get(match[0], match[0]), latex)
    return _BINOMIAL.sub(lambda match: f"{{{match[0]}}}", known)


def _known(element: ElementTree.Element) -> bool:
    """Return whether an element is of MathML, whole, and without unread commands."""
    name = str(element.tag).removeprefix(_SPACE)
    if name not in _CHILDREN or "\\" in (element.text or ""):
        return False
    wanted = _CHILDREN[name]
    return wanted is None or len(element) == wanted


def _tidy(element: ElementTree.Element) -> None:
    """Keep the name, the attributes that are drawn, and as few rows as possible."""
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
    """Return whether a minus follows an operator, so that it is a sign."""
    after_operator = before.tag == "mo" and before.text not in _ENDS
    return after_operator and child.tag == "mo" and child.text in _SIGNS


def _single(element: ElementTree.Element) -> ElementTree.Element:
    """Return the only child of a row that holds one, else the element."""
    alone = element.tag == "mrow" and len(element) == 1 and not element.attrib
    return element[0] if alone else element


def _words(children: list[ElementTree.Element]) -> list[ElementTree.Element]:
    """Join upright letters that follow one another: a name is one identifier."""
    joined: list[ElementTree.Element] = []
    for upright, letters in groupby(children, key=_upright):
        group = list(letters)
        if upright and len(group) > 1:
            word = ElementTree.Element("mi")
            word.text = "".join(letter.text or "" for letter in group)
            group = [word]
        joined += group
    return joined


def _upright(element: ElementTree.Element) -> bool:
    return element.tag == "mi" and element.get("mathvariant") == "normal"

"""Formulas as inline SVG: no script, no font and no network in the page."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from markupsafe import Markup, escape
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath, text_to_path

# LaTeX that matplotlib's mathtext does not know, in words that it does.
_ALIASES = {
    "le": r"\leq ",
    "ge": r"\geq ",
    "lVert": r"\Vert ",
    "rVert": r"\Vert ",
    "lvert": r"\vert ",
    "rvert": r"\vert ",
    "tfrac": r"\frac",
    "iff": r"\Leftrightarrow ",
    "implies": r"\Rightarrow ",
    "argmin": r"\mathrm{arg\,min}",
    "argmax": r"\mathrm{arg\,max}",
    **dict.fromkeys(
        (a + b + c for a in ("bi", "Bi") for b in ("g", "gg") for c in ("", "l", "r")),
        "",
    ),
}
# Arguments of one letter or digit need no braces in LaTeX, but do in mathtext.
_FRACTION = re.compile(r"\\([td]?frac)\s*([0-9])\s*([0-9])")
_ROOT = re.compile(r"\\sqrt(?:\s+([A-Za-z])|\s*([0-9]))")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
# Bars stand too close to what they enclose; an index keeps to its bar.
_BAR = re.compile(
    r"(?<!\\left)(?<!\\right)(?<![_^\\])"
    r"(?P<bar>\\\||\||\\[vV]ert(?![A-Za-z]))(?P<index>\s*[_^])?"
)
_GAP = r"\hspace{0.07}"

# Outlines are taken at 100 units an em, and written to a tenth of a unit.
_EM = 100.0
_MARGIN = 2.0
# STIX has the blackboard and calligraphic letters, and sits well beside a serif.
_FONT = FontProperties(size=_EM, math_fontfamily="stix")
# Outline codes of matplotlib to SVG: move, line, quadratic and cubic curve, close.
_LETTERS = {1: ("M", 1), 2: ("L", 1), 3: ("Q", 2), 4: ("C", 3)}


@dataclass(frozen=True)
class Formula:
    """The outline of a formula, in units of a hundredth of an em.

    Attributes:
        outline: SVG path data, with the baseline at 0 and y downwards.
        left: Left edge of the box.
        width: Width of the box.
        height: From the baseline up.
        depth: From the baseline down.
    """

    outline: str
    left: float
    width: float
    height: float
    depth: float


def renderable(latex: str) -> bool:
    r"""Whether a formula can be drawn; the report shows its source otherwise.

    Args:
        latex: The formula, without dollar signs.

    Example:
        >>> renderable(r"\sqrt{x} \le 2"), renderable(r"\unknown{x}")
        (True, False)
    """
    return formula(latex) is not None


@lru_cache(maxsize=4096)
def formula(latex: str) -> Formula | None:
    """Return the outline of a formula, or None if mathtext cannot draw it."""
    text = f"${_spaced(_known(latex))}$"
    try:
        with _strictly():
            path = TextPath((0, 0), text, size=_EM, prop=_FONT)
            advance, _, _ = text_to_path.get_text_width_height_descent(
                text, _FONT, ismath=True
            )
    except Exception:  # whatever the parser dislikes has one answer: show the source
        return None
    vertices, codes = np.asarray(path.vertices), path.codes
    if codes is None or not len(vertices) or not np.isfinite(vertices).all():
        return None
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    left = min(0.0, float(low[0]))
    return Formula(
        outline=_outline(vertices, codes),
        left=left,
        width=max(float(advance), float(high[0])) - left,
        height=max(float(high[1]), 0.0) + _MARGIN,
        depth=max(-float(low[1]), 0.0) + _MARGIN,
    )


def maths_html(latex: str) -> Markup:
    """Return a formula as inline SVG on the baseline of its text.

    Sizes are in em, so that it scales with the text, and its colour is the text's.
    What cannot be drawn comes back as its LaTeX source in ``<code>``.
    """
    drawn = formula(latex)
    if drawn is None:
        return Markup('<code class="latex">{}</code>').format(latex)
    tall = drawn.height + drawn.depth
    return Markup(
        '<svg class="maths" role="img" aria-label="{label}" '
        'viewBox="{left:g} {top:g} {width:g} {tall:g}" '
        'style="width:{w:.3f}em;height:{h:.3f}em;vertical-align:-{d:.3f}em">'
        '<path fill="currentColor" d="{outline}"/></svg>'
    ).format(
        label=escape(latex),
        left=round(drawn.left, 1),
        top=round(-drawn.height, 1),
        width=round(drawn.width, 1),
        tall=round(tall, 1),
        w=drawn.width / _EM,
        h=tall / _EM,
        d=drawn.depth / _EM,
        outline=Markup(drawn.outline),
    )


def _known(latex: str) -> str:
    """Say in mathtext's words what LaTeX says in its own."""
    braced = _FRACTION.sub(r"\\\1{\2}{\3}", latex)
    braced = _ROOT.sub(lambda m: rf"\sqrt{{{m[1] or m[2]}}}", braced)
    return _COMMAND.sub(lambda m: _ALIASES.get(m[1], m[0]), braced)


def _spaced(latex: str) -> str:
    def widened(found: re.Match[str]) -> str:
        return f"{_GAP}{found['bar']}{found['index'] or _GAP}"

    return _BAR.sub(widened, latex)


def _outline(vertices: np.ndarray, codes: np.ndarray) -> str:
    pieces, place = [], 0
    while place < len(codes):
        letter, count = _LETTERS.get(int(codes[place]), ("Z", 0))
        points = vertices[place : place + count]
        numbers = " ".join(f"{_short(x)} {_short(-y)}" for x, y in points)
        pieces.append(letter + numbers)
        place += max(count, 1)
    return "".join(pieces)


def _short(number: float) -> str:
    return f"{round(float(number), 1) + 0.0:g}"


@contextmanager
def _strictly() -> Iterator[None]:
    """Turn what mathtext only mentions, such as a missing glyph, into an error."""

    def refuse(record: logging.LogRecord) -> bool:
        raise ValueError(record.getMessage())

    log = logging.getLogger("matplotlib.mathtext")
    log.addFilter(refuse)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        log.removeFilter(refuse)

"""Colours of a drawing as they are on a dark page.

Greys change places: black ink becomes the page's light ink, white paper its dark card.
Other colours keep their hue and are made as light as they must be to be seen.
"""

import colorsys
import re
from functools import lru_cache

# The dark page's card and ink, as the style sheet has them.
DARK_CARD, DARK_INK = "#1b1f23", "#e5e3de"
_HEX = re.compile(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?![0-9a-fA-F])")
# Below this distance between the largest and the smallest part, a colour is a grey.
_GREY = 0.07
# Darker greys are inks, lighter ones papers and lines of a grid.
_INK, _PAPER = 0.45, 0.85
# What the guidelines for accessible content ask of graphics; more would make colours
# of one scale alike.
_CONTRAST = 3.0

Colour = tuple[float, float, float]


def followed(value: str) -> str:
    """Return a value of a style that follows the page: light, or dark.

    Example:
        >>> followed("#000000"), followed("none")
        ('light-dark(#000000,#e5e3de)', 'none')
    """
    found = _HEX.fullmatch(value.strip())
    dark = on_dark(found[0]) if found else value
    return value if dark == value else f"light-dark({value},{dark})"


def is_ink_or_paper(value: str) -> bool:
    """Whether a value is a grey so dark or so light that it is no colour of data.

    Example:
        >>> [is_ink_or_paper(one) for one in ("#2b2b2b", "#ffffff", "#bbbbbb", "none")]
        [True, True, False, False]
    """
    if not _HEX.fullmatch(value.strip()):
        return False
    colour = _parts(value.strip())
    return _is_grey(colour) and not _INK < sum(colour) / 3 < _PAPER


@lru_cache(maxsize=4096)
def on_dark(colour: str) -> str:
    """Return the colour that stands for another on a dark page.

    Example:
        >>> on_dark("#ffffff"), on_dark("#0072b2"), on_dark("#000080")
        ('#1b1f23', '#0072b2', '#4d4dff')
    """
    parts = _parts(colour)
    if _is_grey(parts):
        share = sum(parts) / 3
        red, green, blue = (
            ink + (card - ink) * share
            for ink, card in zip(_parts(DARK_INK), _parts(DARK_CARD), strict=True)
        )
        return _hex((red, green, blue))
    hue, light, saturation = colorsys.rgb_to_hls(*parts)
    while _contrast(parts, _parts(DARK_CARD)) < _CONTRAST and light < 1:
        light = min(light + 0.01, 1.0)
        parts = colorsys.hls_to_rgb(hue, light, saturation)
    return _hex(parts)


def _is_grey(colour: Colour) -> bool:
    return max(colour) - min(colour) < _GREY


def _parts(colour: str) -> Colour:
    digits = colour.lstrip("#")
    whole = digits if len(digits) == 6 else "".join(2 * one for one in digits)
    red, green, blue = (int(whole[i : i + 2], 16) / 255 for i in (0, 2, 4))
    return red, green, blue


def _hex(colour: Colour) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)


def _contrast(one: Colour, other: Colour) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Colour) -> float:
    """Return relative luminance, by the guidelines for accessible content 2.2."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

"""The colours of a page, and the colours of figures on a dark page.

Greys change places: black becomes the page's light text, white its dark card. Other
colours keep their hue and are made as light as they must be to be seen.
"""

import colorsys
import re
from functools import lru_cache

# On a light page, and on a dark one. The style sheet makes a variable of each.
PALETTE = {
    "page": ("#fbfaf7", "#14171a"),
    "card": ("#ffffff", "#1b1f23"),
    "ink": ("#1f2328", "#e5e3de"),
    "quiet": ("#595f67", "#a6acb3"),
    "line": ("#dfdcd4", "#33393f"),
    "soft": ("#f3f1eb", "#20252a"),
    "accent": ("#1b4f80", "#8dbbe8"),
    "good": ("#0f5f46", "#84d6b6"),
    "good-bg": ("#e2f1ea", "#15332a"),
    "good-line": ("#2b8a69", "#3f9f7e"),
    "bad": ("#8f2d14", "#f4a990"),
    "bad-bg": ("#fbe8e1", "#3c2018"),
    "bad-line": ("#c4502e", "#cf6744"),
    "unsure": ("#5b4900", "#e5ce80"),
    "unsure-bg": ("#f6eed6", "#342d14"),
    "unsure-line": ("#b0902c", "#b0933b"),
    "note": ("#1b4f80", "#8dbbe8"),
    "note-bg": ("#e4edf6", "#1c2e40"),
    "note-line": ("#5b86b0", "#6d9ac6"),
    "extra": ("#4a3a7c", "#c6b9f2"),
    "extra-bg": ("#ece8f7", "#2b2542"),
    "region": ("#dbe7f3", "#22354a"),
    "a": ("#0072b2", "#56b4e9"),
}
_HEX = re.compile(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?![0-9a-fA-F])")
# Below this distance between the largest and the smallest part, a colour is a grey.
_GREY = 0.07
# Darker greys are text and lines, lighter ones paper and grids.
_DARK, _LIGHT = 0.45, 0.85
# Contrast that the WCAG guidelines require of graphics; more would make colours of
# one scale look alike.
_CONTRAST = 3.0

Colour = tuple[float, float, float]


def light_or_dark(value: str) -> str:
    """Return a value of a style that changes with the page, from light to dark.

    Example:
        >>> light_or_dark("#000000"), light_or_dark("none")
        ('light-dark(#000000,#e5e3de)', 'none')
    """
    dark = on_dark(value.strip()) if _HEX.fullmatch(value.strip()) else value
    return value if dark == value else f"light-dark({value},{dark})"


def is_text_or_paper(value: str) -> bool:
    """Return whether a value is a grey so dark or light that it shows no data.

    Example:
        >>> [is_text_or_paper(one) for one in ("#2b2b2b", "#ffffff", "#bbbbbb", "none")]
        [True, True, False, False]
    """
    if not _HEX.fullmatch(value.strip()):
        return False
    colour = _parts(value.strip())
    return _is_grey(colour) and not _DARK < sum(colour) / 3 < _LIGHT


@lru_cache(maxsize=4096)
def on_dark(colour: str) -> str:
    """Return the colour that replaces another on a dark page.

    Example:
        >>> on_dark("#ffffff"), on_dark("#0072b2"), on_dark("#000080")
        ('#1b1f23', '#0072b2', '#4d4dff')
    """
    parts, ink, card = (
        _parts(c) for c in (colour, PALETTE["ink"][1], PALETTE["card"][1])
    )
    if _is_grey(parts):
        share = sum(parts) / 3
        red, green, blue = (a + (b - a) * share for a, b in zip(ink, card, strict=True))
        parts = (red, green, blue)
    else:
        hue, light, saturation = colorsys.rgb_to_hls(*parts)
        while _contrast(parts, card) < _CONTRAST and light < 1:
            light = min(light + 0.01, 1.0)
            parts = colorsys.hls_to_rgb(hue, light, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def _is_grey(colour: Colour) -> bool:
    return max(colour) - min(colour) < _GREY


def _parts(colour: str) -> Colour:
    digits = colour.lstrip("#")
    whole = digits if len(digits) == 6 else "".join(2 * one for one in digits)
    red, green, blue = (int(whole[i : i + 2], 16) / 255 for i in (0, 2, 4))
    return red, green, blue


def _contrast(one: Colour, other: Colour) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Colour) -> float:
    """Return the relative luminance, as WCAG 2.2 defines it."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

"""Colours for numbers around one: colder below, warmer above."""

import math
from collections.abc import Iterable

from markupsafe import Markup

from theodolite.survey.page.numbers import tick
from theodolite.survey.page.svg import box, element, group

# Levels of colour on each side of one.
LEVELS = 8
# Half a decade at least, so that noise does not look like contrast; four at most.
_NARROWEST, _WIDEST = 0.5, 4.0


def reach_of(values: Iterable[float]) -> float:
    """Return how many decades around one the colours span.

    Example:
        >>> reach_of([1.0, 0.9]), reach_of([100.0]), reach_of([1e-30, 0.0])
        (0.5, 2.0, 4.0)
    """
    logs = [abs(math.log10(one)) for one in values if one > 0 and math.isfinite(one)]
    return min(_WIDEST, max([_NARROWEST, *logs]))


def level_of(value: float, reach: float) -> int:
    """Return the level of a number, from −8 to 8.

    Example:
        >>> level_of(1.0, 2.0), level_of(100.0, 2.0), level_of(0.0, 2.0)
        (0, 8, -8)
    """
    if value <= 0 or math.isnan(value):
        return -LEVELS
    return round(LEVELS * max(-1.0, min(1.0, math.log10(value) / reach)))


def look_of(level: int) -> str:
    """Return the name of a level for the style."""
    return f"h{'m' if level < 0 else ''}{abs(level)}"


class Cells:
    """Rectangles by level, drawn as one path a level."""

    def __init__(self, reach: float) -> None:
        self._reach = reach
        self._paths: dict[int, list[str]] = {}

    def add(
        self, value: float, x: float, y: float, width: float, height: float
    ) -> None:
        """Add one rectangle, coloured by its number."""
        level = level_of(value, self._reach)
        self._paths.setdefault(level, []).append(box(x, y, width, height))

    def drawn(self) -> Markup:
        """Return the rectangles."""
        return group(
            [
                element("path", class_=look_of(level), d="".join(boxes))
                for level, boxes in sorted(self._paths.items())
            ],
            class_="heat",
        )


def key_of(reach: float) -> Markup:
    """Return a key of the colours."""
    wide, parts = 11, []
    for i, level in enumerate(range(-LEVELS, LEVELS + 1)):
        parts.append(
            element("path", class_=look_of(level), d=box(4 + i * wide, 2, wide, 10))
        )
    whole = wide * (2 * LEVELS + 1)
    for at, value in ((0.0, 10.0**-reach), (0.5, 1.0), (1.0, 10.0**reach)):
        told = "1" if at == 0.5 else tick(float(f"{value:.2g}"))
        anchor = {0.0: "start", 0.5: "middle", 1.0: "end"}[at]
        parts.append(element("text", told, x=4 + at * whole, y=25, text_anchor=anchor))
    return element(
        "svg",
        group(parts, class_="heat"),
        class_="heat-key",
        width=whole + 8,
        height=30,
        viewBox=f"0 0 {whole + 8} 30",
        role="img",
        aria_label="Colours: cold below 1, warm above 1",
    )

"""Heat maps: colder colours below one, warmer above."""

import math
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from .charts import HEIGHT, WIDTH
from .numbers import short_number, tick_label
from .svg import group, path, picture, rectangle, text_element

# Levels of colour on each side of the middle; the style sheet has one class for each.
_LEVELS = 8
# Half a decade at least, so that noise does not look like contrast; four at most.
_NARROWEST, _WIDEST = 0.5, 4.0
_LEFT, _RIGHT, _TOP, _BASE = 62, WIDTH - 14, 26, HEIGHT - 46


class HeatCells:
    """Rectangles coloured by ratios around one, drawn as one path per colour.

    Attributes:
        reach: Number of decades around one that the colours span.
    """

    def __init__(self, values: Iterable[float]) -> None:
        """Take the ratios that the colours must tell apart."""
        logs = [abs(math.log10(v)) for v in values if v > 0 and math.isfinite(v)]
        self.reach = min(_WIDEST, max([_NARROWEST, *logs]))
        self._paths: dict[int, list[str]] = {}

    def add(
        self, value: float, x: float, y: float, width: float, height: float
    ) -> None:
        """Add one rectangle."""
        level = -_LEVELS
        if value > 0 and not math.isnan(value):
            share = max(-1.0, min(1.0, math.log10(value) / self.reach))
            level = round(_LEVELS * share)
        self._paths.setdefault(level, []).append(rectangle(x, y, width, height))

    def drawn(self) -> Markup:
        """Return the rectangles that were added."""
        levels = sorted(self._paths.items())
        return group(
            [path(_look(level), "".join(boxes)) for level, boxes in levels], "heat"
        )


def draw_heat_map(
    cells: Mapping[tuple[int, int], float], *, names: Sequence[str], label: str
) -> Markup:
    """Return a map with one row per name, the first on top, and one column per step.

    Colours show ratios to the median of all numbers.

    Args:
        cells: Numbers by step and row.
        names: Names of the rows.
        label: What the drawing shows.
    """
    steps = sorted({step for step, _ in cells})
    positive = sorted(value for value in cells.values() if value > 0)
    middle = positive[len(positive) // 2] if positive else 1.0
    drawn = HeatCells(value / middle for value in cells.values())
    wide = (_RIGHT - _LEFT) / max(len(steps), 1)
    tall = (_BASE - _TOP) / max(len(names), 1)
    for (step, row), value in cells.items():
        x = _LEFT + steps.index(step) * wide
        drawn.add(value / middle, x, _TOP + row * tall, wide, tall)
    low, high = middle * 10**-drawn.reach, middle * 10**drawn.reach
    key = f"blue {short_number(low)}, pale {short_number(middle)}, "
    key += f"red {short_number(high)}"
    axes = [
        text_element(key, _RIGHT, 14, "end"),
        text_element("step", (_LEFT + _RIGHT) / 2, HEIGHT - 8, "middle", "name"),
    ]
    axes += [
        text_element(
            tick_label(step), _LEFT + (place + 0.5) * wide, _BASE + 18, "middle"
        )
        for place, step in enumerate(steps)
        if place % max(1, math.ceil(len(steps) / 5)) == 0
    ]
    axes += [
        text_element(_cut(name), _LEFT - 6, _TOP + (place + 0.5) * tall + 4, "end")
        for place, name in enumerate(names)
        if place % max(1, math.ceil(14 / tall)) == 0
    ]
    return picture("chart", label, WIDTH, HEIGHT, group(axes, "axes"), drawn.drawn())


def _cut(name: str) -> str:
    return name if len(name) <= 8 else f"…{name[-7:]}"


def _look(level: int) -> str:
    """Return the class of a level."""
    return f"h{'m' if level < 0 else ''}{abs(level)}"

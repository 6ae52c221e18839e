"""A number by step and depth, as colours."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from theodolite.survey.page.heat import Cells, reach_of
from theodolite.survey.page.numbers import number, tick
from theodolite.survey.page.svg import element, group

_WIDE, _TALL, _LEFT, _RIGHT, _TOP, _BASE = 460, 270, 62, 14, 26, 224


def draw_heat_map(
    cells: Mapping[tuple[int, int], float], *, names: Sequence[str], label: str
) -> Markup:
    """Return a map with a row a name, the first on top, and a column a step.

    Colours tell ratios to the median of all: colder below, warmer above.

    Args:
        cells: Numbers by step and row.
        names: What the rows are of.
        label: What the drawing shows.
    """
    steps = sorted({step for step, _ in cells})
    positive = sorted(value for value in cells.values() if value > 0)
    middle = positive[len(positive) // 2] if positive else 1.0
    ratios = {place: value / middle for place, value in cells.items()}
    reach = reach_of(ratios.values())
    drawn = Cells(reach)
    wide = (_WIDE - _RIGHT - _LEFT) / max(len(steps), 1)
    tall = (_BASE - _TOP) / max(len(names), 1)
    for (step, row), ratio in ratios.items():
        x = _LEFT + steps.index(step) * wide
        drawn.add(ratio, x, _TOP + row * tall, wide, tall)
    parts = [_key(middle, reach), *_steps(steps, wide), *_depths(names, tall)]
    return element(
        "svg",
        group(parts, class_="axes"),
        drawn.drawn(),
        class_="chart",
        viewBox=f"0 0 {_WIDE} {_TALL}",
        role="img",
        aria_label=label,
    )


def _key(middle: float, reach: float) -> Markup:
    low, high = middle * 10**-reach, middle * 10**reach
    told = f"blue {number(low)}, pale {number(middle)}, red {number(high)}"
    return element("text", told, x=_WIDE - _RIGHT, y=14, text_anchor="end")


def _steps(steps: Sequence[int], wide: float) -> list[Markup]:
    every = max(1, math.ceil(len(steps) / 5))
    found = [
        element(
            "text",
            tick(step),
            x=_LEFT + (place + 0.5) * wide,
            y=_BASE + 18,
            text_anchor="middle",
        )
        for place, step in enumerate(steps)
        if place % every == 0
    ]
    middle = (_LEFT + _WIDE - _RIGHT) / 2
    found.append(
        element("text", "step", class_="name", x=middle, y=262, text_anchor="middle")
    )
    return found


def _depths(names: Sequence[str], tall: float) -> list[Markup]:
    every = max(1, math.ceil(14 / tall))
    return [
        element(
            "text",
            name if len(name) <= 8 else f"…{name[-7:]}",
            x=_LEFT - 6,
            y=_TOP + (place + 0.5) * tall + 4,
            text_anchor="end",
        )
        for place, name in enumerate(names)
        if place % every == 0
    ]

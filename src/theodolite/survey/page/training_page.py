"""A watched training laid out for the template."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from theodolite.core import Rows
from theodolite.pages import (
    Chart,
    Series,
    SharedSvg,
    as_tables,
    draw_chart,
    draw_heat_map,
    finite_points,
    sentence,
    spans_decades,
)

from ..records.outcomes import on_fewest
from ..records.words import word
from .survey_page import filled
from .tables import error_of, value_of, written_value

if TYPE_CHECKING:
    from ..watching.course import Course
    from ..watching.course import Series as Line

# More lines than this are drawn as colours.
_MOST_LINES = 6
# A drawing has at most this many points; longer trainings are thinned evenly.
_MOST_POINTS, _MOST_COLUMNS = 600, 150
# Quantities that the page shows first, if measured; the others keep their order.
_FIRST = ("training_loss", "loss", "largest_eigenvalue", "rate_over_stable")
_FIRST += ("gradient_norm", "branch_gain", "dead_share")


def training_page(course: "Course") -> str:
    """Return the page of a watched training."""
    series = course.series()
    names = sorted(series, key=[*_FIRST, *series].index)
    content = {**course.to_dict()}
    rows = content.pop("rows")
    data = {"kind": "course", **content, "rows": as_tables(rows)}
    shown = {
        "title": course.title,
        "course": course,
        "pictures": [_picture(name, series[name]) for name in names],
        "table": [_line(name, one) for name in names for one in series[name]],
    }
    return filled("training.html.j2", shown, data, SharedSvg())


def _picture(quantity: str, lines: Sequence["Line"]) -> dict[str, Any]:
    name, meaning = word(quantity).name, word(quantity).meaning
    many = len(lines) > _MOST_LINES
    of = f", {len(lines)} blocks by depth" if many else ""
    on = on_fewest(row for line in lines for row in line.rows)
    return {
        "title": f"{name}{of}{on}",
        "caption": sentence(meaning) if meaning else "",
        "svg": (_heat_map if many else _chart)(quantity, lines),
    }


def _chart(quantity: str, lines: Sequence["Line"]) -> Markup:
    name = word(quantity).name
    series = tuple(
        Series(
            name=one.of or name,
            points=finite_points(
                (row["step"], value_of(row), error_of(row))
                for row in _thinned(one.rows, _MOST_POINTS)
            ),
            quiet=len(lines) > 1,
        )
        for one in lines
    )
    edge = ((1.0, "edge of stability"),) if quantity == "rate_over_stable" else ()
    return draw_chart(
        Chart(
            label=f"{name} by step",
            x="step",
            y=name.lower(),
            series=series,
            log_y=spans_decades(p[1] for one in series for p in one.points),
            levels=edge,
        )
    )


def _heat_map(quantity: str, lines: Sequence["Line"]) -> Markup:
    cells = {
        (int(row["step"]), place): value
        for place, one in enumerate(lines)
        for row in _thinned(one.rows, _MOST_COLUMNS)
        if (value := value_of(row)) is not None
    }
    names = [one.of for one in lines]
    return draw_heat_map(cells, names=names, label=f"{word(quantity).name} by step")


def _thinned(rows: Rows, most: int) -> Rows:
    """Return at most this many rows, evenly spaced, including the last."""
    every = -(-len(rows) // most)
    return rows[(len(rows) - 1) % every :: every] if every > 1 else rows


def _line(quantity: str, line: "Line") -> dict[str, Any]:
    ends = line.rows[0], line.rows[-1]
    return {
        "word": word(quantity),
        "quantity": quantity,
        "which": line.of,
        "values": [written_value(row) for row in ends],
        "steps": [row["step"] for row in ends],
    }

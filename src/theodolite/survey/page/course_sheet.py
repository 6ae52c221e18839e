"""A watched training laid out for the template."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from theodolite.core import Rows
from theodolite.survey.page.blocks import told_value
from theodolite.survey.page.chart import Chart, Series, draw, finite_points
from theodolite.survey.page.columns import error_of, value_of
from theodolite.survey.page.embedded import as_tables
from theodolite.survey.page.heat_map import draw_heat_map
from theodolite.survey.page.scales import spans_decades
from theodolite.survey.page.template import fill
from theodolite.survey.page.words import word

if TYPE_CHECKING:
    from theodolite.survey.watching.course import Course
    from theodolite.survey.watching.course import Series as Line

# More lines than these are told by colours.
_MOST_LINES = 6
# A drawing is no finer than these; longer trainings are thinned evenly.
_MOST_POINTS, _MOST_COLUMNS = 600, 150
# What the page shows first, where it was measured; the rest follows as it came.
_FIRST = ("loss", "sharpness", "rate_over_stable", "gradient_norm", "branch_gain")


def course_page(course: "Course") -> str:
    """Return the page of a watched training."""
    series = course.series()
    order = [
        *(q for q in _FIRST if q in series),
        *(q for q in series if q not in _FIRST),
    ]
    content = {**course.to_dict()}
    rows = content.pop("rows")
    return fill(
        "course.html.j2",
        {
            "title": course.title,
            "course": course,
            "pictures": [_picture(name, series[name], series) for name in order],
            "table": [_line(name, one) for name in order for one in series[name]],
        },
        {"kind": "course", **content, "rows": as_tables(rows)},
    )


def _picture(
    quantity: str, lines: Sequence["Line"], series: dict[str, list["Line"]]
) -> dict[str, Any]:
    told = word(quantity)
    many = len(lines) > _MOST_LINES
    drawn = _heat(quantity, lines) if many else _lines(quantity, lines, series)
    of = f", {len(lines)} blocks by depth" if many else ""
    return {"title": told.name + of, "caption": _sentence(told.meaning), "svg": drawn}


def _sentence(meaning: str) -> str:
    return f"{meaning[:1].upper()}{meaning[1:]}." if meaning else ""


def _lines(
    quantity: str, lines: Sequence["Line"], series: dict[str, list["Line"]]
) -> Markup:
    drawn = tuple(
        Series(
            name=one.of or word(quantity).name,
            points=finite_points(
                [
                    (row["step"], value_of(row), error_of(row))
                    for row in _thinned(one.rows, _MOST_POINTS)
                ]
            ),
            quiet=len(lines) > 1,
        )
        for one in lines
    )
    values = [p[1] for one in drawn for p in one.points]
    levels: tuple[tuple[float, str], ...] = ()
    if quantity == "rate_over_stable":
        levels = ((1.0, "edge of stability"),)
    return draw(
        Chart(
            label=f"{word(quantity).name} by step",
            x="step",
            y=word(quantity).name.lower(),
            series=drawn,
            log_y=spans_decades(values),
            levels=levels,
        )
    )


def _heat(quantity: str, lines: Sequence["Line"]) -> Markup:
    cells = {
        (int(row["step"]), place): value
        for place, one in enumerate(lines)
        for row in _thinned(one.rows, _MOST_COLUMNS)
        if (value := value_of(row)) is not None
    }
    return draw_heat_map(
        cells, names=[one.of for one in lines], label=f"{word(quantity).name} by step"
    )


def _thinned(rows: Rows, most: int) -> Rows:
    """Return so many rows at most, evenly, the last among them."""
    every = -(-len(rows) // most)
    return rows[(len(rows) - 1) % every :: every] if every > 1 else rows


def _line(quantity: str, line: "Line") -> dict[str, Any]:
    first, last = line.rows[0], line.rows[-1]
    return {
        "word": word(quantity),
        "quantity": quantity,
        "which": line.of,
        "values": [told_value(first), told_value(last)],
        "steps": [first["step"], last["step"]],
    }

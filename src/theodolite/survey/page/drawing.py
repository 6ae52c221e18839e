"""The cross-section of a survey as a figure."""

from typing import TYPE_CHECKING, Any

from theodolite.core import MeasurementError, Rows
from theodolite.figures import draw_cross_section
from theodolite.survey.page.columns import columns_of, side_of
from theodolite.survey.page.tracks import TRACKS, marks_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from theodolite.survey.records.whole_survey import Survey


def cross_section(survey: "Survey") -> "Figure":
    """Draw a cross-section of the network by depth.

    Raises:
        MeasurementError: Nothing was measured by depth.
    """
    rows = rows_by_depth(survey)
    if not len(rows):
        raise MeasurementError(
            f"the survey of {survey.title} holds no number by depth: survey with the "
            "measures map, signal or jacobian"
        )
    return draw_cross_section(rows, title=survey.title)


def rows_by_depth(survey: "Survey") -> Rows:
    """Return what a cross-section shows, a row a block and quantity."""
    side, columns = side_of(survey), columns_of(survey)
    rows: list[dict[str, Any]] = []
    for track in TRACKS:
        marks = marks_of(track, side, columns)
        for column, mark in zip(columns, marks, strict=True):
            place = {"block": column.name, "depth": column.index}
            if track.kind == "heat":
                mine = side.by_block[column.name].where(quantity=track.quantity)
                rows += [{**row, **place} for row in mine]
            elif mark is not None:
                value, low, high = mark
                reach = None if track.spread else max(high - value, value - low)
                rows.append(
                    {
                        "quantity": track.quantity,
                        "value": value,
                        "error": reach,
                        **place,
                    }
                )
    return Rows(rows)

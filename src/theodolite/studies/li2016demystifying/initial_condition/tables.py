"""What figure 4 shows, and what is printed beside its predictions."""

import math

from theodolite.core import Roads, Row, Rows, points


def table(roads: Roads) -> Rows:
    """Return means of the decimal logarithm by kind and depth, and closed forms."""
    found = points(roads.measured.where(quantity="ratio"), ("kind", "depth"), log=True)
    closed = roads.predicted.where(quantity="ratio")
    return found + [
        {**row, "quantity": "closed_form", "value": math.log10(row["value"])}
        for row in closed
    ]


def compare(roads: Roads) -> list[Row]:
    """Closed form at zero beside the mean over networks at small weights."""
    closed = roads.predicted.where(quantity="ratio")
    ratios = points(roads.measured.where(quantity="ratio"), ("kind", "depth"))
    return [
        {
            "label": f"ratio, {row['kind'].replace('_', '-')}, depth {row['depth']}",
            "predicted": closed.value(kind=row["kind"], depth=row["depth"]),
            "measured": row["value"],
            "error": row["error"],
        }
        for row in ratios
        if row["kind"] in closed.levels("kind")
    ]

"""What is drawn of nonlinear networks, and printed beside predictions."""

import math

from theodolite.core import Roads, Row, Rows, points


def table(roads: Roads) -> Rows:
    """Return ratios by kind and depth on a logarithm, and distances from the limit."""
    ratios = roads.measured.where(quantity="ratio")
    found = points(ratios, ("kind", "depth"), log=True)
    at_zero = roads.predicted.where(quantity="ratio")
    gaps = roads.measured.where(quantity="limit_gap")
    rows: list[Row] = [
        {**row, "quantity": "closed_form", "value": math.log10(row["value"])}
        for row in at_zero
    ]
    if len(gaps):
        top = max(gaps.levels("scale"))
        height = 2 * max(gaps.where(scale=top).values())
        rows += [
            {"quantity": "square", "scale": s, "value": height * (s / top) ** 2}
            for s in gaps.levels("scale")
        ]
    return found + rows + gaps


def compare(roads: Roads) -> list[Row]:
    """Closed forms at zero beside means at small weights."""
    at_zero = roads.predicted.where(quantity="ratio")
    ratios = points(roads.measured.where(quantity="ratio"), ("kind", "depth"))
    return [
        {
            "label": f"ratio, 1-shortcut {row['kind']}, depth {row['depth']}",
            "predicted": found.value(),
            "measured": row["value"],
            "error": row["error"],
        }
        for row in ratios
        if len(found := at_zero.where(kind=row["kind"], depth=row["depth"]))
    ]

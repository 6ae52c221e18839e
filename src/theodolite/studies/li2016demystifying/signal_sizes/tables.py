"""What is drawn of signals, and variances beside their prediction."""

import math

from theodolite.core import Roads, Row, Rows, points


def table(roads: Roads) -> Rows:
    """Return variances on a logarithm with closed forms, and responses by epoch."""
    variance = roads.measured.where(quantity="variance")
    foretold = [
        {**row, "quantity": "closed_form", "value": math.log10(row["value"])}
        for row in roads.predicted.where(quantity="variance")
    ]
    response = roads.measured.where(quantity="response", status="finished")
    return Rows(
        [
            *points(variance, ("kind", "units"), log=True),
            *foretold,
            *points(response, ("depth", "epoch")),
        ]
    )


def compare(roads: Roads) -> list[Row]:
    """Variances by theory beside means of the decimal logarithm."""
    rows: list[Row] = []
    found = points(
        roads.measured.where(quantity="variance"), ("kind", "units"), log=True
    )
    for row in found:
        labels = {"kind": row["kind"], "units": row["units"]}
        wanted = roads.predicted.value(quantity="variance", **labels)
        rows.append(
            {
                "label": f"log10 variance, {row['kind']}, {row['units']} units",
                "predicted": math.log10(wanted),
                "measured": row["value"],
                "error": row["error"],
            }
        )
    return rows

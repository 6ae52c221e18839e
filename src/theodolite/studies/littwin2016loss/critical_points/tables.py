"""Exponents, counts and the approach to the limit, as rows to draw."""

from theodolite.core import Roads, Row, Rows, points


def curves(roads: Roads) -> Rows:
    """Return figure 1(f): exponents by depth and scale, and those of plain networks."""
    return roads.predicted.where(quantity="exponent") + roads.predicted.where(
        quantity="plain_exponent"
    )


def counts(roads: Roads) -> Rows:
    """Return mean counts of all points with their closed forms, by dimension."""
    found = points(roads.measured.where(quantity="total"), ("mixture", "width"))
    labels = [{"mixture": row["mixture"], "width": row["width"]} for row in found]
    closed = [
        {
            **at,
            "quantity": quantity,
            "value": roads.predicted.value(quantity=name, **at),
        }
        for quantity, name in (("closed_form", "total"), ("asymptotic", "asymptotic"))
        for at in labels
    ]
    return found + Rows(closed)


def approach(roads: Roads) -> Rows:
    """Return the excess over Eq 31 by dimension, order and index."""
    return roads.predicted.where(quantity="excess")


def compare(roads: Roads) -> list[Row]:
    """Exact means beside what was counted."""
    rows: list[Row] = []
    for quantity, by in (("total", ()), ("count", ("index",))):
        labels = ("mixture", "width", *by)
        for row in points(roads.measured.where(quantity=quantity), labels):
            at = {label: row[label] for label in labels}
            which = f"of index {row['index']}" if by else "of all indices"
            told = f"critical points {which}, {row['mixture']}"
            rows.append(
                {
                    "label": f"{told}, dimension {row['width']}",
                    "predicted": roads.predicted.value(quantity=quantity, **at),
                    "measured": row["value"],
                    "error": row["error"],
                }
            )
    return rows

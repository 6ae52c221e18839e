"""Shares of derivatives that survive, beside what lemma 3 allows."""

from theodolite.core import Roads, Row, Rows


def shares(roads: Roads) -> Rows:
    """Return what is allowed and the most that was measured, by length and order."""
    found = roads.measured.where(quantity="share", setting="general")
    return Rows(
        {
            **row,
            "measured": float(
                found.where(n=row["n"], order=row["order"]).values().max()
            ),
        }
        for row in roads.predicted.where(quantity="allowed")
    )


def compare(roads: Roads) -> list[Row]:
    """Share of non-zero derivatives beside what lemma 3 allows."""
    return [
        {
            "label": f"non-zero derivatives of order {row['order']}, n = {row['n']}"
            " (at most)",
            "predicted": row["value"],
            "measured": row["measured"],
            "error": 0.0,
        }
        for row in shares(roads)
    ]

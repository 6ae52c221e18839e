"""What the figure shows, and what is printed beside predictions."""

from theodolite.core import Roads, Row, Rows, points

SHOWN = (
    ("looseness", "layers"),
    ("first_term", "scale"),
    ("least_eigenvalue", "scale"),
)


def table(roads: Roads) -> Rows:
    """Return means of decimal logarithms over networks."""
    return Rows.joined(
        points(roads.measured.where(quantity=quantity), (over,), log=True)
        for quantity, over in SHOWN
    )


def compare(roads: Roads) -> list[Row]:
    """Cycles of descent on a cost without Lipschitz gradient."""
    return [
        {
            "label": f"amplitude on |z|^(3/2), rate {row['rate']:g}",
            "predicted": roads.predicted.value(quantity="cycle", rate=row["rate"]),
            "measured": row["value"],
            "error": row["error"],
        }
        for row in roads.measured.where(quantity="amplitude")
    ]

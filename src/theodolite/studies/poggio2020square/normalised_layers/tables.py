"""What the figure shows, and what is printed beside predictions."""

from theodolite.core import Roads, Row, Rows


def table(roads: Roads) -> Rows:
    """Return how far convolutions of norm one stretch images of norm one."""
    return roads.measured.where(quantity="stretch")


def compare(roads: Roads) -> list[Row]:
    """The batch norm's Jacobian, closed form beside autodiff."""
    return [
        {
            "label": f"Jacobian of batch norm, entry {row['row']}, {row['column']}",
            "predicted": roads.predicted.value(
                quantity="jacobian", row=row["row"], column=row["column"]
            ),
            "measured": row["value"],
            "error": row["error"],
        }
        for row in roads.measured.where(quantity="jacobian")
    ]

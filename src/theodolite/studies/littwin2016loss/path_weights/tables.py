"""What figure 1(a–c) shows, and what is printed beside predictions."""

from theodolite.core import Roads, Row, Rows


def table(roads: Roads) -> Rows:
    """Return the weights by length, of whole numbers and by closed form."""
    exact = roads.measured.where(quantity="weight")
    closed = roads.predicted.where(quantity="weight")
    return Rows(
        [
            *({**row, "road": "exact"} for row in exact),
            *({**row, "road": "closed form"} for row in closed),
        ]
    )


def compare(roads: Roads) -> list[Row]:
    """Peaks and their weights in figure 1, closed form beside whole numbers."""
    rows: list[Row] = []
    both = table(roads)
    for beta in both.levels("beta"):
        exact, closed = (
            max(both.where(road=road, beta=beta), key=lambda row: row["value"])
            for road in ("exact", "closed form")
        )
        for name, column in (("peak", "length"), ("weight at the peak", "value")):
            rows.append(
                {
                    "label": f"{name}, depth {exact['depth']}, beta {beta:g}",
                    "predicted": closed[column],
                    "measured": exact[column],
                    "error": 0.0 if column == "length" else exact["error"],
                }
            )
    return rows

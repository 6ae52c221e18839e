"""Measured second moments beside the closed forms."""

from theodolite.core import Roads, Row, Rows, points

# What is averaged, by what it is called.
MOMENTS = {
    "variance": "variance of the energy over $\\Lambda$",
    "covariance": "covariance at overlap ½ over $\\Lambda$",
    "slope_square": "$v'$, variance of the gradient",
    "bend_square": "$v''$, $\\Lambda$ times that of the Hessian",
    "radial_square": "$v' + v''$, along the radius",
}


def table(roads: Roads) -> Rows:
    """Return means over trials, over the closed forms of definition 3 and Eq 28."""
    rows: list[Row] = []
    for quantity in MOMENTS:
        for name in (quantity, f"printed_{quantity}"):
            found = points(roads.measured.where(quantity=name), ("mixture", "width"))
            for row in found:
                labels = {"mixture": row["mixture"], "width": row["width"]}
                closed = roads.predicted.value(quantity=quantity, **labels)
                scaled = {key: row[key] / closed for key in ("value", "error")}
                printed = name != quantity
                rows.append({**row, **scaled, "quantity": quantity, "printed": printed})
    return Rows(rows)


def compare(roads: Roads) -> list[Row]:
    """Closed forms beside the means over trials."""
    rows: list[Row] = []
    for quantity, told in MOMENTS.items():
        found = points(roads.measured.where(quantity=quantity), ("mixture", "width"))
        for row in found:
            labels = {"mixture": row["mixture"], "width": row["width"]}
            rows.append(
                {
                    "label": f"{told}, {row['mixture']}, dimension {row['width']}",
                    "predicted": roads.predicted.value(quantity=quantity, **labels),
                    "measured": row["value"],
                    "error": row["error"],
                }
            )
    return rows

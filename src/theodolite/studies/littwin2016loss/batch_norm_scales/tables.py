"""Scales by layer and stage, and sizes beside those of the wide limit."""

from theodolite.core import Roads, Row, Rows, points


def table(roads: Roads) -> Rows:
    """Return mean magnitudes of the scales by kind, layer and stage."""
    found = points(
        roads.measured.where(quantity="scale"), ("norm", "stage", "step", "layer")
    )
    return found


def sizes(roads: Roads) -> Rows:
    """Return mean squares and deviations at the start, and those of the limit."""
    found = [
        row
        for quantity in ("square", "deviation")
        for row in points(roads.measured.where(quantity=quantity), ("layer",))
    ]
    theory = [
        {**row, "quantity": f"{row['quantity']}_limit"}
        for row in roads.predicted
        if row["quantity"] in ("square", "deviation")
    ]
    return Rows([*found, *theory])


def compare(roads: Roads) -> list[Row]:
    """Set squares of the wide limit beside those of wide networks."""
    rows: list[Row] = []
    for row in roads.predicted.where(quantity="square"):
        found = points(
            roads.measured.where(quantity="square", layer=row["layer"]), ("layer",)
        )
        for mean in found:
            rows.append(
                {
                    "label": f"mean square of a unit, layer {row['layer']}",
                    "predicted": row["value"],
                    "measured": mean["value"],
                    "error": mean["error"] if mean["n"] > 1 else row["error"],
                }
            )
    return rows

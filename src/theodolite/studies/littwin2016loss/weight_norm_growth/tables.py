"""What figure 1(e) shows, and starting norms beside theory."""

from theodolite.core import Roads, Row, Rows, points


def table(roads: Roads) -> Rows:
    """Return the norm over its start by step, and the two parts of its change."""
    rows = roads.measured.where(lambda row: row["quantity"] in SHOWN)
    start = {
        (row["init_scale"], row["trial"]): row["value"]
        for row in rows.where(quantity="norm", stage=0)
    }
    found: list[Row] = []
    for row in rows:
        first = start[row["init_scale"], row["trial"]]
        power = 1 if row["quantity"] == "norm" else 2
        found.append({**row, "value": row["value"] / first**power})
    return Rows.joined(
        points(Rows(found).where(quantity=quantity), ("init_scale", "step"))
        for quantity in SHOWN
    )


SHOWN = ("norm", "radial", "tangential")


def compare(roads: Roads) -> list[Row]:
    """Set starting norms beside those of the draw."""
    rows: list[Row] = []
    for row in roads.predicted:
        found = points(
            roads.measured.where(
                quantity=row["quantity"], init_scale=row["init_scale"], stage=0
            ),
            ("init_scale",),
        )
        rows += [
            {
                "label": f"{row['quantity']} at the start, scale {row['init_scale']:g}",
                "predicted": row["value"],
                "measured": mean["value"],
                "error": mean["error"] if mean["n"] > 1 else row["error"],
            }
            for mean in found
        ]
    return rows

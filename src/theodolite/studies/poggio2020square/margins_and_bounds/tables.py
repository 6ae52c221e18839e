"""What the figure shows, and widest margins by duality beside those found."""

from theodolite.core import Roads, Row, Rows, points

SHOWN = ("bound", "fixed_bound", "ramp", "held_error")


def table(roads: Roads) -> Rows:
    """Return both sides of the bound by decay."""
    return Rows.joined(
        points(roads.measured.where(quantity=name), ("decay",)) for name in SHOWN
    )


def compare(roads: Roads) -> list[Row]:
    """Set margins and norms found by search beside those of duality."""
    rows: list[Row] = []
    for name in ("widest_margin", "shortest_norm", "interpolating_norm"):
        for row in roads.predicted.where(quantity=name)[:2]:
            found = roads.measured.only(quantity=name, trial=row["trial"])
            rows.append(
                {
                    "label": f"{name.replace('_', ' ')}, trial {row['trial']}",
                    "predicted": row["value"],
                    "measured": found["value"],
                    "error": found["error"],
                }
            )
    return rows

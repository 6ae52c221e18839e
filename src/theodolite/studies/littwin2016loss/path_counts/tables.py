"""Paths by length on both roads."""

from theodolite.core import Roads, Row, Rows


def table(roads: Roads) -> Rows:
    """Return paths by length of the deepest residual network, of both roads."""
    deepest = max(roads.measured.where(network="residual").levels("depth"))
    chosen = {"quantity": "mass", "network": "residual", "depth": deepest}
    first = min(roads.measured.where(**chosen).levels("trial"))
    found = [
        {**row, "road": "listed"} for row in roads.measured.where(**chosen, trial=first)
    ]
    return Rows(
        [*found, *({**r, "road": "formula"} for r in roads.predicted.where(**chosen))]
    )


def compare(roads: Roads) -> list[Row]:
    """Paths of each length: the formula beside how many were listed."""
    rows = table(roads)
    listed = rows.where(road="listed")
    return [
        {
            "label": f"paths of length {row['length']}, depth {row['depth']}",
            "predicted": row["value"],
            "measured": listed.value(length=row["length"]),
            "error": 0.0,
        }
        for row in rows.where(road="formula")
    ]

"""What the figure shows, and floors beside what was measured."""

from theodolite.core import Roads, Row, Rows, points


def table(roads: Roads) -> Rows:
    """Return both gaps at rest by layer, and the floor under the first layer's."""
    decay = min(roads.measured.where(quantity="sum_gap").levels("decay"))
    rest = roads.measured.where(stage="end", decay=decay)
    shown = Rows.joined(
        points(rest.where(quantity=name), ("kind", "layer"))
        for name in ("sum_gap", "sample_gap")
    )
    return shown + roads.predicted.where(quantity="first_layer_floor")


def compare(roads: Roads) -> list[Row]:
    """Set gaps of written-down networks beside their closed forms."""
    rows: list[Row] = []
    for row in roads.predicted.where(quantity="constraint_gap", trial=_first(roads)):
        labels = {k: row[k] for k in ("network", "layer", "trial")}
        found = roads.measured.only(quantity="constraint_gap", **labels)
        rows.append(
            {
                "label": f"gap of the first layer: {row['network']}",
                "predicted": row["value"],
                "measured": found["value"],
                "error": found["error"],
            }
        )
    return rows


def _first(roads: Roads) -> int:
    return roads.predicted.levels("trial")[0]

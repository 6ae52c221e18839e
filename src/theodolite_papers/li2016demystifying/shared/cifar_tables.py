"""Theory beside means over trained networks."""

from typing import Any

from theodolite.core import PredictedAndMeasured, Row, group_means


def beside(
    both: PredictedAndMeasured, quantity: str, name: str, **labels: Any
) -> list[Row]:
    """Set a quantity by theory beside the mean over networks, depth by depth."""
    rows: list[Row] = []
    for row in both.predicted.where(quantity=quantity):
        found = both.measured.where(quantity=quantity, depth=row["depth"], **labels)
        if len(found):
            mean = group_means(found, ("depth",))[0]
            rows.append(
                {
                    "label": f"{name}, depth {row['depth']}",
                    "predicted": row["value"],
                    "measured": mean["value"],
                    "error": mean["error"] if mean["n"] > 1 else row["error"],
                }
            )
    return rows

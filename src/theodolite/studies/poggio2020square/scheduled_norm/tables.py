"""Runs at the settings that each split chose, and what figures show of them."""

import math

from theodolite.core import Roads, Row, Rows, points

SHOWN = ("held_error", "disagreement", "mean_margin")


def chosen(rows: Rows) -> Rows:
    """Keep the setting of least error on the samples to choose by, ties by the loss.

    Each split chooses for itself, over both starts, and is judged on samples that had
    no part in it.
    """
    scores: dict[tuple, dict[int, list[float]]] = {}
    for row in rows:
        if row.get("quantity") in ("choice_error", "choice_loss"):
            place = scores.setdefault(_key(row), {}).setdefault(
                row["setting"], [0.0, 0.0]
            )
            value = row["value"]
            known = value is not None and math.isfinite(value)
            place[row["quantity"] == "choice_loss"] += value if known else math.inf
    best = {
        key: min(places, key=lambda setting: (*places[setting], setting))
        for key, places in scores.items()
    }
    return rows.where(
        lambda row: "setting" not in row or row["setting"] == best.get(_key(row))
    )


def _key(row: Row) -> tuple:
    return tuple(row.get(label) for label in ("task", "method", "trial"))


def table(roads: Roads) -> Rows:
    """Return errors, disagreements and margins by task and method."""
    kept = chosen(roads.measured)
    return Rows.joined(
        points(_averaged(kept.where(quantity=name)), ("task", "method"))
        for name in SHOWN
    )


def _averaged(rows: Rows) -> Rows:
    """Average the starts of each split, which is the unit of chance."""
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault(_key(row), []).append(row)
    return Rows(
        {**group[0], "value": sum(float(row["value"]) for row in group) / len(group)}
        for group in groups.values()
    )


def compare(roads: Roads) -> list[Row]:
    """Norms of networks in training beside the growth that the schedule copies."""
    rows: list[Row] = []
    for row in roads.predicted.where(quantity="course"):
        found = roads.measured.where(quantity="course", share=row["share"])
        if len(found):
            rows.append(
                {
                    "label": f"norm over its end, {row['share']:.0%} of the steps",
                    "predicted": row["value"],
                    "measured": float(found.values().mean()),
                    "error": found[0]["error"],
                }
            )
    return rows

"""Ensembles along training as the paper's explorer shows them: means alone."""

from collections.abc import Iterator

from theodolite.core import PredictedAndMeasured, Row, Rows, group_means

from .figure import GROUP, units_of, whole

NORMS = {"scalar": "one scale a layer", "batch": "batch norm", "none": "no norm"}


def exhibit(both: PredictedAndMeasured) -> Rows:
    """Return effective depth, spread and fitted scale by kind of network and step."""
    rows = whole(both.measured)
    return Rows(row for part in ("output", "gradient") for row in _part(rows, part))


def _part(rows: Rows, part: str) -> Iterator[Row]:
    for quantity in ("depth", "spread", "beta"):
        chosen = rows.where(quantity=f"{part}_{quantity}")
        for point in group_means(chosen, (*GROUP, "step")):
            blocks = units_of(point)
            # Depths are kept as shares of the branches.
            unit = blocks if quantity == "depth" else 1
            yield {
                "quantity": "effective_depth" if quantity == "depth" else quantity,
                "network": _name(point),
                "part": part,
                "blocks": blocks,
                "step": point["step"],
                "value": point["value"] * unit,
                "error": point["error"] * unit,
            }


def _name(row: Row) -> str:
    norm = NORMS.get(row["norm"], row["norm"])
    return f"{row['task']}, {row['family']}, depth {row['depth']}, {norm}"

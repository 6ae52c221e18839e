"""Runs by how they ended and how they were foretold, for claims and the figure."""

from collections import Counter

import numpy as np

from theodolite.core import PredictedAndMeasured, Row, Rows, group_means

from .config import DIVERGES, NAMES, STUCK, TRAINS

LABELS = ("family", "kind", "depth", "scale", "trial", "lr")
FORETOLD = ("foretold", "by_sharpness", "all_train")


def scored(both: PredictedAndMeasured) -> PredictedAndMeasured:
    """Return the sides with a row a run of what claims select, as 0, 1 or -1.

    ``foretold``, ``by_sharpness``, ``all_train``: whether it ended as said.
    ``trained``: whether it trained. ``missed``: 1 for a divergence that was not
    foretold, -1 for another error, else 0.
    """
    ends = {_key(row): row["value"] for row in both.measured.where(quantity="phase")}
    rows: list[dict] = []
    for row in both.measured:
        if row["quantity"] not in (*FORETOLD, "phase"):
            continue
        end = ends[_key(row)]
        right = {**row, "value": float(row["value"] == end)}
        if row["quantity"] == "phase":
            rows.append({**row, "quantity": "trained", "value": float(end == TRAINS)})
            continue
        rows.append(right)
        if row["quantity"] == "foretold":
            kind = 1.0 if end == DIVERGES else -1.0
            missed = 0.0 if right["value"] else kind
            rows.append({**row, "quantity": "missed", "value": missed})
    return PredictedAndMeasured(both.predicted, Rows.of_plain(rows))


def _key(row: Row) -> tuple:
    return tuple(row[name] for name in LABELS)


def table(both: PredictedAndMeasured) -> Rows:
    """Return how most runs of a tile ended, and whether that was foretold."""
    tiles: dict[tuple, dict[str, Counter]] = {}
    for row in both.measured:
        if row["quantity"] in ("phase", "foretold"):
            tile = tuple(row[k] for k in LABELS if k != "trial")
            counts = tiles.setdefault(tile, {"phase": Counter(), "foretold": Counter()})
            counts[row["quantity"]][row["value"]] += 1
    labels = [k for k in LABELS if k != "trial"]
    return Rows(
        {
            **dict(zip(labels, tile, strict=True)),
            "quantity": "tile",
            "value": _most(counts["phase"]),
            "foretold": _most(counts["foretold"]),
            "wrong": _most(counts["phase"]) != _most(counts["foretold"]),
            "decade": _decade(tile[-1]),
        }
        for tile, counts in tiles.items()
    )


def _most(counts: Counter) -> int:
    return min(counts, key=lambda phase: (-counts[phase], phase))


def _decade(rate: float) -> int | None:
    """Return the power of ten that a rate is, if it is one."""
    power = float(np.log10(rate))
    return round(power) if abs(power - round(power)) < 1e-6 else None


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Share of runs in each phase, foretold beside measured, by seeds."""
    rows: list[Row] = []
    for family in both.measured.levels("family"):
        for phase in (TRAINS, STUCK, DIVERGES):
            found = {}
            for name in ("foretold", "phase"):
                runs = both.measured.where(quantity=name, family=family)
                hits = Rows({**r, "value": float(r["value"] == phase)} for r in runs)
                by_seed = group_means(hits, ("trial",))
                (found[name],) = group_means(by_seed, ("quantity",))
            rows.append(
                {
                    "label": f"share of {family} runs that end so: {NAMES[phase]}",
                    "predicted": found["foretold"]["value"],
                    "measured": found["phase"]["value"],
                    "error": found["phase"]["error"],
                }
            )
    return rows

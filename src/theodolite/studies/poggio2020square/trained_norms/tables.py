"""What the figures show, and norms at the start beside those of the captions."""

import numpy as np

from theodolite.core import Roads, Row, Rows, points
from theodolite.studies.poggio2020square.trained_norms.config import CONDITIONS

KEYS = ("family", "condition", "start")


def _courses(roads: Roads, *quantities: str) -> Rows:
    """Return means over the trials whose course was kept, of what moved at all."""
    found = Rows.joined(
        points(roads.measured.where(quantity=name), (*KEYS, "epoch"))
        for name in quantities
    )
    moved = {tuple(row[k] for k in KEYS) for row in found if row["epoch"] > 0}
    return found.where(lambda row: tuple(row[k] for k in KEYS) in moved)


def _decayed(rows: Rows) -> Rows:
    """Return those with decay or, where none of them trained, without."""
    kept = rows.where(condition="bn_wd")
    return kept if len(kept) else rows.where(condition="bn")


def losses(roads: Roads) -> Rows:
    """Return losses by epoch, of the settings that figures show."""
    rows = _courses(roads, "train_loss_at", "test_loss_at")
    return rows.where(lambda row: row["condition"] != "bn_fast")


def norms(roads: Roads) -> Rows:
    """Return norms by epoch."""
    return _courses(roads, "rho_at")


def zooms(roads: Roads) -> Rows:
    """Return norms and mean outputs with decay, by epoch."""
    return _decayed(_courses(roads, "rho_at", "mean_abs_f_at"))


def ratios(roads: Roads) -> Rows:
    """Return ratios with decay, and where they should rest."""
    return _decayed(_courses(roads, "ratio_at", "ratio_limit_at"))


def margins(roads: Roads) -> Rows:
    """Return sorted margins at the end, over their mean magnitude."""
    rows = points(roads.measured.where(quantity="margin_level"), (*KEYS, "share"))
    found: list[Row] = []
    for row in rows:
        same = {k: row[k] for k in KEYS}
        size = float(np.abs(rows.where(**same).values()).mean())
        found.append({**row, "value": row["value"] / size})
    return Rows(found).where(lambda row: row["condition"] != "bn_fast")


def histograms(roads: Roads) -> Rows:
    """Return levels of the outputs' magnitudes by epoch."""
    return points(
        roads.measured.where(quantity="abs_f_level"), (*KEYS, "epoch", "share")
    )


def compare(roads: Roads) -> list[Row]:
    """Set norms at the start beside the captions', and ratios beside their limits."""
    rows: list[Row] = []
    for row in roads.predicted.where(quantity="rho_start"):
        key = {k: row[k] for k in ("condition", "start")}
        found = points(roads.measured.where(quantity="rho_start", **key), tuple(key))
        rows += [
            {
                "label": f"ρ at the start, {row['condition']}, {row['start']:g}",
                "predicted": row["value"],
                "measured": mean["value"],
                "error": 1e-5 * mean["value"],
            }
            for mean in found
        ]
    for start in CONDITIONS["bn_wd"].starts:
        here = {"condition": "bn_wd", "start": start}
        limits = points(
            roads.measured.where(quantity="ratio_limit", **here), ("family",)
        )
        ends = points(roads.measured.where(quantity="ratio", **here), ("family",))
        rows += [
            {
                "label": f"Σyf/Σf² over ρ, {limit['family']}, from {start:g}",
                "predicted": limit["value"],
                "measured": end["value"],
                "error": end["error"],
            }
            for limit, end in zip(limits, ends, strict=True)
        ]
    return rows

"""Curvature in units of the edge, by network; factors between two readings."""

import math

from theodolite.core import (
    ByNetwork,
    Number,
    Quantity,
    Read,
    Roads,
    Row,
    Rows,
    Select,
    by_network,
    estimate,
    measured,
    points,
)
from theodolite.studies.macdonald2023skip.whole_set_curvature.config import (
    BATCHES,
    DESCENT,
    END,
    FROZEN,
    FROZEN_BATCHES,
    LATE,
    START,
    TOGETHER,
    WHOLE,
)


def edges(roads: Roads) -> dict[str, float]:
    """Return where each rule stops being stable."""
    return {r["rule"]: r["value"] for r in roads.predicted.where(quantity="edge")}


def from_edge(rows: Select, rule: str, *, name: str) -> Read:
    """Read the mean decimal logarithm of curvatures over the edge of a rule."""

    def read(roads: Roads) -> Quantity:
        edge = edges(roads).get(rule, math.nan)
        found = by_network(rows(roads), log=True)
        moved = {k: v - math.log10(edge) for k, v in found.values.items()}
        return ByNetwork(moved, found.errors, found.note).mean(name)

    return read


def gap(rows: Rows, high: str, low: str) -> ByNetwork:
    """Return the decimal logarithm of one reading over another, by network."""
    parts = [by_network(rows.where(reading=name), log=True) for name in (high, low)]
    return parts[0].minus(parts[1])


def growth_of_gap(rule: str) -> Read:
    """Read how much more batches are above the whole set late than at the start."""

    def read(roads: Roads) -> Quantity:
        rows = roads.measured.where(quantity="sharpness", rule=rule)
        late = gap(rows.where(lambda row: row["moment"] >= LATE), BATCHES, WHOLE)
        start = gap(rows.where(moment=START), BATCHES, WHOLE)
        return late.minus(start).mean(f"growth of log10 batches over whole set, {rule}")

    return read


def samples_less_statistics() -> Read:
    """Read the factor due to few samples over that due to their statistics."""

    def read(roads: Roads) -> Quantity:
        rows = ended(roads)
        samples, statistics = gap(rows, BATCHES, TOGETHER), gap(rows, TOGETHER, WHOLE)
        name = "log10 factor due to samples less that due to statistics"
        return samples.minus(statistics).mean(name)

    return read


def ended(roads: Roads) -> Rows:
    """Return readings after full-batch descent, of which there are all kinds."""
    return roads.measured.where(quantity="sharpness", rule=DESCENT, moment=END)


CORNERS = {
    "single batches over all batches together, own statistics": (BATCHES, TOGETHER),
    "all batches together over whole set": (TOGETHER, WHOLE),
    "single batches over whole set, constant statistics": (FROZEN_BATCHES, FROZEN),
    "constant over differentiated statistics, whole set": (FROZEN, WHOLE),
    "own over constant statistics, single batches": (BATCHES, FROZEN_BATCHES),
}


def corners(roads: Roads) -> dict[str, Number]:
    """Return the factors between readings after full-batch descent."""
    found = {}
    for name, pair in CORNERS.items():
        values = list(gap(ended(roads), *pair).values.values())
        if len(values) > 1:
            told = estimate(values)
            factor = 10**told.mean
            found[name] = Number(factor, factor * math.log(10) * told.stderr)
    return found


def table(roads: Roads) -> Rows:
    """Return each reading over the edge of its rule, by moment, as logarithms."""
    known = edges(roads)
    rows = points(
        roads.measured.where(quantity="sharpness"),
        ("rule", "reading", "moment"),
        log=True,
    )
    return Rows(
        {**row, "value": row["value"] - math.log10(known[row["rule"]])} for row in rows
    )


def compare(roads: Roads) -> list[Row]:
    """Set the late curvature of the whole set, and of batches, beside the edge."""
    found = []
    late = measured("sharpness", lambda row: row["moment"] >= LATE)
    for rule, edge in edges(roads).items():
        for reading in (WHOLE, BATCHES):
            kept = by_network(late.at(rule=rule, reading=reading)(roads))
            if kept.values:
                told = estimate(list(kept.values.values()))
                found.append(
                    {
                        "label": f"late λmax, {reading}, {rule}",
                        "predicted": edge,
                        "measured": told.mean,
                        "error": told.stderr,
                    }
                )
    return found

"""Depths by network and stage, and what measured scales foretell of them."""

import math

import numpy as np

from theodolite.core import Roads, Row, Rows, points

GROUP = ("family", "task", "norm", "depth")


def whole(rows: Rows) -> Rows:
    """Return the rows of networks that were trained to the end."""
    lost = {
        _network(row) for row in rows.where(quantity="finished") if not row["value"]
    }
    return rows.where(lambda row: _network(row) not in lost) if lost else rows


def _network(row: Row) -> tuple:
    return (*(row[k] for k in GROUP), row["trial"])


def groups(rows: Rows) -> list[dict]:
    """Return the labels of every kind of network that was read, in one order."""
    found = {tuple(row[k] for k in GROUP) for row in rows.where(quantity="scale")}
    return [dict(zip(GROUP, key, strict=True)) for key in sorted(found)]


def units_of(row: Row) -> int:
    """Return the residual units of a network."""
    return row["depth"] - 1 if row["family"] == "layerwise" else (row["depth"] - 2) // 2


def foretold(roads: Roads, quantity: str) -> Rows:
    """Return the share of branches that the law gives at a measured scale."""
    laws: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for count in roads.predicted.where(quantity="law_depth").levels("units"):
        law = roads.predicted.where(quantity="law_depth", units=count)
        laws[count] = np.log(law.values("beta")), law.values()
    found = []
    for row in whole(roads.measured).where(quantity=quantity):
        if units_of(row) not in laws or not row["value"]:
            continue
        value = float(np.interp(math.log(row["value"]), *laws[units_of(row)]))
        error = 1e-4  # of interpolation between the points of the grid
        found.append({**row, "quantity": "foretold", "value": value, "error": error})
    return Rows(found)


def table(family: str, roads: Roads) -> Rows:
    """Return mean depths by kind of network of a family, and step."""
    rows = whole(roads.measured).where(family=family)
    return Rows.joined(
        points(rows.where(quantity=quantity), (*GROUP, "step"))
        for quantity in ("output_depth", "gradient_depth")
    )


def compare(roads: Roads) -> list[Row]:
    """Set the depth that gains foretell beside the output's, start and end."""
    rows: list[Row] = []
    law = foretold(roads, "gain_beta")
    measured = whole(roads.measured).where(quantity="output_depth")
    for group in groups(roads.measured):
        stages = measured.where(**group).levels("stage")
        for stage in (stages[0], stages[-1]) if stages else ():
            one, two = (
                points(part.where(stage=stage, **group), GROUP)
                for part in (law, measured)
            )
            if len(one) and len(two):
                named = f"{group['task']}, {group['norm']}, depth {group['depth']}"
                rows.append(
                    {
                        "label": f"share of branches, {named}, stage {stage}",
                        "predicted": one[0]["value"],
                        "measured": two[0]["value"],
                        "error": two[0]["error"] if two[0]["n"] > 1 else 0.0,
                    }
                )
    return rows

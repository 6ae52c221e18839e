"""Effective depth along training, one panel per kind of network."""

import math
from collections.abc import Iterator

import numpy as np

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, group_means

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
    keys = {tuple(row[k] for k in GROUP) for row in rows.where(quantity="scale")}
    return [dict(zip(GROUP, key, strict=True)) for key in sorted(keys)]


def units_of(row: Row) -> int:
    """Return the number of residual units of a network."""
    return row["depth"] - 1 if row["family"] == "layerwise" else (row["depth"] - 2) // 2


def laws(predicted: Rows) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    r"""Return $\log\beta$ and the share of branches taken, by number of units."""
    rows = predicted.where(quantity="law_depth")
    by_count = {}
    for count in rows.levels("units"):
        law = rows.where(units=count)
        by_count[count] = np.log(law.values("beta")), law.values()
    return by_count


def foretold(both: PredictedAndMeasured, quantity: str) -> Rows:
    """Return the share of branches that the law gives at a measured scale."""
    known, rows = laws(both.predicted), []
    for row in whole(both.measured).where(quantity=quantity):
        if units_of(row) not in known or not row["value"]:
            continue
        law = known[units_of(row)]
        value, more = (
            float(np.interp(math.log(beta), *law))
            for beta in (row["value"], row["value"] + abs(row["error"]))
        )
        # Errors of the scale, and of interpolation between the points of the grid.
        error = abs(more - value) + 1e-4
        rows.append({**row, "quantity": "foretold", "value": value, "error": error})
    return Rows(rows)


def table(family: str, both: PredictedAndMeasured) -> Rows:
    """Return mean depths of a family by kind of network and step."""
    rows = whole(both.measured).where(family=family)
    return Rows.joined(
        group_means(rows.where(quantity=quantity), (*GROUP, "step"))
        for quantity in ("output_depth", "gradient_depth")
    )


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return depths predicted from gains beside the output's, at start and end."""
    rows: list[Row] = []
    law = foretold(both, "gain_beta")
    measured = whole(both.measured).where(quantity="output_depth")
    for group in groups(both.measured):
        stages = measured.where(**group).levels("stage")
        for stage in (stages[0], stages[-1]) if stages else ():
            one, two = (
                group_means(part.where(stage=stage, **group), GROUP)
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


def exhibit(both: PredictedAndMeasured) -> Rows:
    """Return effective depth, spread and fitted scale by kind of network and step."""
    rows = whole(both.measured)
    return Rows(row for part in ("output", "gradient") for row in _part(rows, part))


def _part(rows: Rows, part: str) -> Iterator[Row]:
    for quantity in ("depth", "spread", "beta"):
        chosen = rows.where(quantity=f"{part}_{quantity}")
        for point in group_means(chosen, (*GROUP, "step")):
            blocks, norm = units_of(point), NORMS.get(point["norm"], point["norm"])
            # Depths are kept as shares of the branches.
            unit = blocks if quantity == "depth" else 1
            yield {
                "quantity": "effective_depth" if quantity == "depth" else quantity,
                "network": f"{point['task']}, {point['family']}, "
                f"depth {point['depth']}, {norm}",
                "part": part,
                "blocks": blocks,
                "step": point["step"],
                "value": point["value"] * unit,
                "error": point["error"] * unit,
            }


NORMS = {"scalar": "one scale a layer", "batch": "batch norm", "none": "no norm"}
KINDS = {"scalar": "scalar_norm", "batch": "batch_norm", "none": "no_norm"}
PARTS = {"output_depth": "output", "gradient_depth": "gradient"}


def draw(table: Rows) -> "figures.Figure":
    """Draw shares of branches taken against the step; columns are tasks."""
    tasks = sorted({(row["task"], row["depth"]) for row in table}) or [("", 0)]
    count = len(tasks)
    figure, panels = figures.new_figure(7.0, 4.4, panels=(2, count), share_y=True)
    for place, (part, name) in enumerate(PARTS.items()):
        for column, (task, depth) in enumerate(tasks):
            panel = panels[place * count + column]
            _draw_one(panel, table.where(quantity=part, task=task, depth=depth))
            if place:
                panel.set_xlabel("step")
            else:
                panel.set_title(f"{task},\ndepth {depth}")
            if not column:
                panel.set_ylabel(f"share of branches,\n{name}")
    panels[0].set_ylim(bottom=0)  # that of all, once all is drawn
    figures.shared_legend(figure)
    return figure


def _draw_one(panel: "figures.Axes", table: Rows) -> None:
    for norm, label in NORMS.items():
        rows = table.where(norm=norm)
        if len(rows):
            style = figures.kind_style(KINDS[norm])
            figures.row_band(
                panel, rows, "step", error="spread", style=style, label=label
            )
    figures.reference_line(panel, 0.5)
    figures.count_axis(panel)

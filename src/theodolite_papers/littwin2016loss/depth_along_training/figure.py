"""Effective depth along training, one panel per kind of network."""

import math
from collections.abc import Iterator

import numpy as np

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, group_means

from ..shared.layerwise_config import LONG, SHORT
from .config import EXEMPT

GROUP = ("family", "task", "norm", "depth", "horizon", "readout", "rate")
RUN = (*GROUP, "trial")


def whole(rows: Rows) -> Rows:
    r"""Return the rows of networks that were trained to the end.

    To them are added those of $\\beta/(1+\\beta)$, the share of the depth that
    theorem 1 gives at the measured $\\beta$ of the paper.
    """
    lost = {
        _network(row) for row in rows.where(quantity="finished") if not row["value"]
    }
    rows = rows.where(lambda row: _network(row) not in lost) if lost else rows
    return rows + [
        {
            **row,
            "quantity": row["quantity"].replace("scale_beta", "paper_depth"),
            "value": row["value"] / (1 + row["value"]),
            "error": 1e-9,
        }
        for row in rows
        if row["quantity"].endswith("scale_beta")
    ]


def _network(row: Row) -> tuple:
    return (*(row[k] for k in GROUP), row["trial"])


def groups(rows: Rows) -> list[dict]:
    """Return the labels of every kind of network that was read, in one order."""
    keys = {tuple(row[k] for k in GROUP) for row in rows.where(quantity="scale")}
    return [dict(zip(GROUP, key, strict=True)) for key in sorted(keys, key=_order)]


def _order(key: tuple) -> tuple:
    """Put the networks of figure 1(d) first."""
    family, task, norm, depth, horizon, readout, rate = key
    first = family != "layerwise", task != "gaussians", list(NORMS).index(norm)
    return (*first, depth, horizon != SHORT, -readout, rate, task)


def network_name(group: Row) -> str:
    """Return the name of a kind of network and its training."""
    kind = f"{group['task']}, {NORMS[group['norm']]}, depth {group['depth']}"
    readout = f", readout × {group['readout']:g}"
    if group["family"] == "images":
        return f"{kind}, convolutional{readout if group['readout'] != 1 else ''}"
    more = ", many more updates" if group["horizon"] == LONG else ""
    return f"{kind}{readout}, rate {group['rate']:g}{more}"


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
    for row in both.among("measured", whole).where(quantity=quantity):
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


def table(family: str, horizon: str, both: PredictedAndMeasured) -> Rows:
    """Return mean depths of a family by kind of network and step."""
    rows = both.among("measured", whole).where(family=family, horizon=horizon)
    return Rows.joined(
        group_means(rows.where(quantity=quantity), (*GROUP, "step"))
        for quantity in ("output_depth", "gradient_depth")
    )


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return depths predicted from gains beside the output's, at start and end."""
    rows: list[Row] = []
    law = foretold(both, "gain_beta")
    measured = both.among("measured", whole).where(quantity="output_depth")
    for group in groups(both.measured):
        steps = measured.where(**group).levels("step")
        for step in (steps[0], steps[-1]) if steps else ():
            one, two = (
                group_means(part.where(step=step, **group), GROUP)
                for part in (law, measured)
            )
            if len(one) and len(two):
                name = f"{network_name(group)}, step {step}"
                rows.append(
                    {
                        "label": f"share of branches, {name}",
                        "predicted": one[0]["value"],
                        "measured": two[0]["value"],
                        "error": two[0]["error"] if two[0]["n"] > 1 else 0.0,
                    }
                )
    return rows


def exhibit(both: PredictedAndMeasured) -> Rows:
    """Return effective depth, spread and fitted scale by kind of network and step."""
    rows = both.among("measured", whole)
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
                "network": network_name(point),
                "part": part,
                "blocks": blocks,
                "step": point["step"],
                "value": point["value"] * unit,
                "error": point["error"] * unit,
            }


NORMS = {
    "scalar": "one scale a layer",
    "batch": "batch norm",
    EXEMPT: "batch norm without decay",
    "none": "no norm",
}
KINDS = {
    "scalar": "scalar_norm",
    "batch": "batch_norm",
    EXEMPT: "norm_without_decay",
    "none": "no_norm",
}
PARTS = {"output_depth": "output", "gradient_depth": "gradient"}


def draw(table: Rows) -> "figures.Figure":
    """Draw shares of branches taken against the step; columns are tasks."""
    names = ("task", "depth", "readout")
    kinds = sorted({tuple(row[k] for k in names) for row in table}) or [("", 0, 1.0)]
    rates = {k: table.where(task=k[0], readout=k[2]).levels("rate") for k in kinds}
    columns = [
        {**dict(zip(names, kind, strict=True)), "rate": rate}
        for kind in kinds
        for rate in (rates[kind] if kind[0] == "gaussians" else (None,))
    ]
    count = len(columns)
    figure, panels = figures.new_figure(7.0, 4.4, panels=(2, count), share_y=True)
    for place, (part, name) in enumerate(PARTS.items()):
        for column, labels in enumerate(columns):
            panel = panels[place * count + column]
            known = {k: v for k, v in labels.items() if v is not None}
            _draw_one(panel, table.where(quantity=part, **known))
            if place:
                panel.set_xlabel("step")
            else:
                training = f"\nreadout × {labels['readout']:g}"
                training += (
                    "" if labels["rate"] is None else f",\nrate {labels['rate']}"
                )
                panel.set_title(
                    f"{labels['task']},\ndepth {labels['depth']},{training}"
                )
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

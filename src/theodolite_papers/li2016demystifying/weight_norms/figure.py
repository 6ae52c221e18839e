"""Draw figure 3 from saved rows."""

import math

import numpy as np

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row, group_means

from ..shared.figure import draw_depths
from .config import PRESETS

# A linear network is near zero while its loss is above this fraction of the first.
NEAR_ZERO = 0.98
# It has left zero when its loss is below this fraction.
LEFT_ZERO = 0.5


def _last(measured: Rows) -> Rows:
    norms = measured.where(quantity="norm")
    return norms.where(step=max(norms.levels("step")))


def _lost(measured: Rows) -> set[tuple]:
    """Return network, depth and rate of all runs that diverged."""
    ends = measured.where(lambda row: row["value"] is None, quantity="final_loss")
    return {(row["network"], row["depth"], row["lr"]) for row in ends}


def along(measured: Rows) -> Rows:
    """Return norms at one rate per network: the highest with no divergence."""
    lost = {(network, rate) for network, _, rate in _lost(measured)}
    norms = measured.where(quantity="norm")
    rows = []
    for network in norms.levels("network"):
        mine = norms.where(network=network)
        kept = [rate for rate in mine.levels("lr") if (network, rate) not in lost]
        rows.append(mine.where(lr=max(kept)) if kept else Rows())
    return Rows.joined(rows)


def ends(measured: Rows) -> Rows:
    """Return the last norms of all depths at that rate."""
    return _last(along(measured))


def underway(measured: Rows) -> Rows:
    """Return the norms at steps after which every network has left zero."""
    rows = along(measured)
    table = []
    for network in rows.levels("network"):
        mine = rows.where(network=network)
        first = {(r["depth"], r["trial"]): r.get("loss") for r in mine.where(step=0)}
        near = {
            row["step"]
            for row in mine
            if (loss := row.get("loss")) is None
            or not loss < LEFT_ZERO * (first[row["depth"], row["trial"]] or 0.0)
        }
        steps = [step for step in mine.levels("step") if step > max(near)]
        table.append(mine.where(lambda row, steps=steps: row["step"] in steps))
    return Rows.joined(table)


def at_best(measured: Rows) -> Rows:
    """Return the last norms of each depth at its best rate; ``edge`` marks an end rate.

    The best rate has the least mean final loss of all rates at which no run diverges.
    It is known to within its neighbours; the error of the norm includes this.
    """
    last, lost = _last(measured), _lost(measured)
    losses = measured.where(quantity="final_loss")
    rows: list[Row] = []
    for network in last.levels("network"):
        for depth in last.where(network=network).levels("depth"):
            tried = group_means(losses.where(network=network, depth=depth), ("lr",))
            kept = [r for r in tried if (network, depth, r["lr"]) not in lost]
            if not kept:
                continue
            best = min(kept, key=lambda row: row["value"])["lr"]
            edge = best in (tried[0]["lr"], tried[-1]["lr"])
            here = last.where(network=network, depth=depth)
            apart = _resolution(here, [row["lr"] for row in kept], best)
            rows += [
                {**row, "edge": edge, "error": row["error"] + apart}
                for row in here.where(lr=best)
            ]
    return Rows(rows)


def _resolution(rows: Rows, rates: list[float], best: float) -> float:
    """Return the largest change of the mean norm from the best rate to a neighbour."""
    at = rates.index(best)
    centre = rows.where(lr=best).values().mean()
    beside = [rate for rate in rates[max(at - 1, 0) : at + 2] if rate != best]
    apart = [abs(rows.where(lr=rate).values().mean() - centre) for rate in beside]
    return float(max(apart, default=math.inf))


def early(both: PredictedAndMeasured) -> Rows:
    """Return linear networks' norms over the law, at the last step near zero.

    Column ``growth`` is the norm divided by the norm at the start.
    """
    first = both.predicted.value(quantity="first_loss")
    start = both.predicted.where(quantity="early_norm", step=0)[0]["value"]
    rows = along(both.measured).where(network="linear")
    table: list[Row] = []
    for depth in rows.levels("depth"):
        here = rows.where(depth=depth)
        gone = {row["step"] for row in here if row["loss"] < NEAR_ZERO * first}
        step = max(s for s in here.levels("step") if s < min(gone, default=np.inf))
        for row in here.where(step=step):
            law = both.predicted.value(quantity="early_norm", lr=row["lr"], step=step)
            ratio = {key: row[key] / law for key in ("value", "error")}
            growth = row["value"] / start
            table.append({**row, "quantity": "early_ratio", **ratio, "growth": growth})
    return Rows(table)


def norms_table(both: PredictedAndMeasured) -> Rows:
    """Return means and spreads along training, and the law near zero."""
    rows = along(both.measured).where(lambda row: row["step"] > 0)
    means = group_means(rows, ("network", "lr", "depth", "step"))
    linear = means.where(network="linear")
    top = max(linear.column("value"))
    law = both.predicted.where(
        lambda row: row["step"] > 0 and row["value"] < top,
        quantity="early_norm",
        lr=linear.levels("lr")[0],
    )
    return means + law


def scaling_table(both: PredictedAndMeasured) -> Rows:
    """Return last norms by number of units, and a 1/√units curve through the last."""
    rows = Rows(
        {**row, "units": row["depth"] // 2, "open": row["edge"]}
        for row in at_best(both.measured)
    )
    means = group_means(rows, ("network", "units"))
    edges = {(row["network"], row["units"]) for row in rows if row["edge"]}
    table = [{**row, "open": (row["network"], row["units"]) in edges} for row in means]
    for network in means.levels("network"):
        last = means.where(network=network)[-1]
        table += [
            {
                **row,
                "quantity": "inverse_root",
                "value": last["value"] * (last["units"] / row["units"]) ** 0.5,
            }
            for row in means.where(network=network)
        ]
    return Rows(table)


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return norms near zero beside their law."""
    return [
        compared_row(
            f"norm near zero over its law, linear, depth {row['depth']}, "
            f"step {row['step']}",
            1.0,
            row,
        )
        for row in group_means(early(both), ("depth", "step"))
    ]


TITLES = {"linear": "without nonlinearities", "relu": "with ReLU at mid"}
KINDS = {"linear": "two_shortcut", "relu": "two_shortcut_relu"}


def draw_norms(table: Rows) -> "figures.Figure":
    """Draw the mean norm against the step, one panel per network."""
    figure, panels = figures.new_figure(7.0, 3.8, panels=(1, 2), share_y=True)
    for panel, (network, title) in zip(panels, TITLES.items(), strict=True):
        points = table.where(quantity="norm", network=network)
        draw_depths(panel, points, "step", PRESETS["paper"].depths)
        if network == "linear":
            law = table.where(quantity="early_norm")
            near = figures.row_curve(
                panel, law, "step", style="measured", label="law near zero"
            )
            near.set_zorder(3)
        figures.log_axis(panel, "x")
        figures.log_axis(panel, "y")
        panel.set_title(f"{title}, rate {points.levels('lr')[0]:g}")
        panel.set_xlabel("step of gradient descent")
    panels[0].set_ylabel(r"mean $\|W\|_F$ over matrices")
    figures.shared_legend(figure)
    return figure


def draw_scaling(table: Rows) -> "figures.Figure":
    """Draw final norms against the number of units."""
    figure, (panel,) = figures.new_figure(5.2, 3.8)
    for name in TITLES:
        points = table.where(quantity="norm", network=name)
        guide = table.where(quantity="inverse_root", network=name)
        style = KINDS[name]
        figures.row_band(
            panel,
            points,
            "units",
            error="spread",
            style=style,
            label=TITLES[name],
            bound=points.column("open"),
            means="hollow: the best rate is not known",
        )
        figures.row_curve(
            panel, guide, "units", style=style, means=r"$R^{-1/2}$ through the last"
        )
    figures.log_axis(panel, "x", base=2, ticks=table.levels("units"))
    figures.log_axis(panel, "y", base=2, ticks=[0.5, 1.0, 2.0, 4.0])
    panel.set_xlabel("residual units $R$ (two matrices each)")
    panel.set_ylabel(r"mean $\|W\|_F$ at the end")
    figures.legend(panel)
    return figure

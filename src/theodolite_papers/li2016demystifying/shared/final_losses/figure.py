"""Tables and drawings of figures 7 and 8, and losses beside the optimum."""

import math
from collections.abc import Iterable
from dataclasses import replace

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row, group_means

from .reading import NAMES, common, floor_of, means_of, prepared, reference

# Networks that the paper leaves out of figure 8.
LEFT_OUT = ("one_shortcut", "three_shortcut")


def by_depth(both: PredictedAndMeasured) -> Rows:
    """Return mean logarithms of losses, and the rates with the least mean loss."""
    ready = prepared(both).measured
    flat = {(r["network"], r["depth"]): r["flat"] for r in ready.where(quantity="rate")}
    losses = group_means(ready.where(quantity="loss"), ("network", "depth"), log=True)
    rates = [
        {**row, "quantity": "rate", "open": flat[row["network"], row["depth"]]}
        for row in both.measured.where(quantity="log10_rate")
    ]
    rows = [*losses, *sorted(rates, key=lambda row: row["depth"])]
    return _drawn(both, rows)


def by_rate(both: PredictedAndMeasured) -> Rows:
    """Return the logarithm of mean losses by rate, at three depths."""
    means = _drawn(both, means_of(both.measured)).where(beside=False)
    names = [name for name in NAMES if name in means.levels("network")]
    depths = common(means.where(network=name) for name in names)
    shown = {depths[0], depths[len(depths) // 2], depths[-1]}
    ends = _ends(both)
    rows = [
        {
            **row,
            "quantity": "mean",
            "last": row["rate"] == ends.get((row["network"], row["depth"])),
            "rate": 10 ** row["rate"],
            "value": math.log10(row["value"]),
            "error": row["error"] / row["value"] / math.log(10),
        }
        for row in means
        if row["depth"] in shown
    ]
    return _drawn(both, rows)


def _ends(both: PredictedAndMeasured) -> dict[tuple[str, int], float]:
    """Return the highest rate at which no run diverged, if higher ones were tried."""
    tried = both.measured.where(lambda row: row["quantity"].startswith("mean_"))
    highest: dict[tuple[str, int], list[float]] = {}
    for row in tried:
        alive, all_of = highest.setdefault(
            (row["network"], row["depth"]), [-math.inf, -math.inf]
        )
        here = row["rate"]
        highest[row["network"], row["depth"]] = [
            max(alive, here) if row["diverged"] == 0 else alive,
            max(all_of, here),
        ]
    return {key: alive for key, (alive, most) in highest.items() if alive < most}


def _drawn(both: PredictedAndMeasured, rows: Iterable[Row]) -> Rows:
    """Mark networks that are not the paper's, and add the loss of a zero output."""
    plotted = "excess" if floor_of(both) else "final_loss"
    zero = math.log10(reference(both, f"zero_map_{plotted}"))
    beside = LEFT_OUT if plotted == "final_loss" else ()
    marked = [{**row, "beside": row.get("network") in beside} for row in rows]
    return Rows([*marked, {"quantity": "zero_map", "plotted": plotted, "value": zero}])


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return the least loss of a linear map beside what 2-shortcut networks reach."""
    floor = floor_of(both)
    best = floor or reference(both, "linear_optimum")
    name = "optimal loss" if floor else "best linear map"
    losses = prepared(both).measured.where(quantity="loss", network="two_shortcut")
    return [
        compared_row(
            f"{name} and final loss, 2-shortcut, depth {row['depth']}",
            best,
            {**row, "value": floor + row["value"]},
        )
        for row in group_means(losses, ("depth",))
    ]


AXES = {"excess": "final loss − optimal loss", "final_loss": "final loss"}
LABELS = {
    "xavier": "Xavier",
    "orthogonal": "orthogonal",
    "one_shortcut": "1-shortcut",
    "two_shortcut": "2-shortcut",
    "three_shortcut": "3-shortcut",
}
# Networks that the paper leaves out of figure 8, and why.
BESIDE = {
    "one_shortcut": "1-shortcut (linear), not in the paper",
    "three_shortcut": "3-shortcut, not in the paper",
}
# Markers on a line of many rates.
MARKERS = 8
DIVERGES = "some network diverges at the next rate"


def draw(table: Rows) -> "figures.Figure":
    """Draw losses and rates against depth."""
    figure, (left, right) = figures.new_figure(7.0, 3.8, panels=(1, 2))
    for name in _networks(table):
        rows = table.where(network=name)
        style, label = figures.kind_style(name), LABELS[name]
        if rows[0]["beside"]:
            style, label = replace(style, line="dashdot"), BESIDE[name]
        for panel, quantity in ((left, "loss"), (right, "rate")):
            shown = rows.where(quantity=quantity)
            figures.row_band(
                panel,
                shown,
                "depth",
                style=style,
                label=label if panel is right else None,
                bound=shown.column("open") if panel is right else None,
                means="hollow: no rate is best",
            )
    # Depths of our extra networks are too close to the others for separate ticks.
    ticks = table.where(beside=False).levels("depth")
    for panel in (left, right):
        figures.log_axis(panel, "x", base=2, ticks=ticks)
        figures.power_axis(panel, "y")
        panel.set_xlabel("depth (weight matrices)")
    zero = table.only(quantity="zero_map")
    left.set_ylabel(AXES[zero["plotted"]])
    right.set_ylabel("best learning rate")
    figures.reference_line(left, zero["value"], label="outputs zero")
    figures.shared_legend(figure)
    return figure


def draw_by_rate(table: Rows) -> "figures.Figure":
    """Draw the mean loss against the rate, at three depths."""
    depths = table.levels("depth")
    figure, panels = figures.new_figure(7.0, 3.4, panels=(1, len(depths)), share_y=True)
    zero = table.only(quantity="zero_map")
    for panel, depth in zip(panels, depths, strict=True):
        for place, name in enumerate(_networks(table)):
            rows = table.where(quantity="mean", network=name, depth=depth)
            drawn = figures.row_band(
                panel,
                rows,
                "rate",
                style=name,
                label=LABELS[name],
                ends=DIVERGES if any(rows.column("last")) else None,
            )
            # Rates are dense: a few markers, no two series at the same rates.
            every = max(len(rows) // MARKERS, 1)
            drawn.set_markevery((place % every, every))
        figures.log_axis(panel, "x")
        figures.power_axis(panel, "y")
        panel.set_title(f"depth {depth}")
        panel.set_xlabel("learning rate")
        figures.reference_line(panel, zero["value"], label="outputs zero")
    panels[0].set_ylabel(AXES[zero["plotted"]])
    figures.shared_legend(figure)
    return figure


def _networks(table: Rows) -> list[str]:
    drawn = table.levels("network")
    return [name for name in LABELS if name in drawn]

"""What figures 7 and 8 show, and what is printed beside the optimum."""

import math
from collections.abc import Iterable

from theodolite.core import PredictedAndMeasured, Row, Rows, group_means

from .reading import NAMES, common, floor_of, means_of, prepared, reference

# Networks that the paper leaves out of figure 8.
LEFT_OUT = ("one_shortcut", "three_shortcut")


def by_depth(both: PredictedAndMeasured) -> Rows:
    """Return mean logarithms of losses, and the rates with the least mean loss."""
    found = prepared(both).measured
    flat = {(r["network"], r["depth"]): r["flat"] for r in found.where(quantity="rate")}
    losses = group_means(found.where(quantity="loss"), ("network", "depth"), log=True)
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
    """Return the highest rate with no diverged run, where higher ones were tried."""
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
    """Mark networks beside the paper's, and add what a network without output has."""
    plotted = "excess" if floor_of(both) else "final_loss"
    zero = math.log10(reference(both, f"zero_map_{plotted}"))
    beside = LEFT_OUT if plotted == "final_loss" else ()
    marked = [{**row, "beside": row.get("network") in beside} for row in rows]
    return Rows([*marked, {"quantity": "zero_map", "plotted": plotted, "value": zero}])


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Set the least loss of a linear map beside what 2-shortcut networks reach."""
    floor = floor_of(both)
    best = floor or reference(both, "linear_optimum")
    name = "optimal loss" if floor else "best linear map"
    found = prepared(both).measured.where(quantity="loss", network="two_shortcut")
    return [
        {
            "label": f"{name} and final loss, 2-shortcut, depth {row['depth']}",
            "predicted": best,
            "measured": floor + row["value"],
            "error": row["error"],
        }
        for row in group_means(found, ("depth",))
    ]

"""Losses and rates that the claims on figures 7 and 8 select, network by network.

Only seeds are independent: networks of one seed share their weights over depths. So
means over depths are taken for each seed first.
"""

import math
from collections.abc import Iterable

import numpy as np

from theodolite.core import (
    Choice,
    Judgement,
    PredictedAndMeasured,
    Quantity,
    Read,
    Row,
    Rows,
    Sampled,
    Test,
    above,
    against,
    below,
    by_network,
    each,
    every,
    inside,
    known,
    measured,
    sampled,
    undecided,
)

# "Basically the same": final losses at best and worst rate within a tenth.
SAME = 0.1
# "In deep networks": from this many matrices up.
DEEP = 8
NAMES = {
    "xavier": "Xavier",
    "orthogonal": "orthogonal",
    "one_shortcut": "1-shortcut",
    "two_shortcut": "2-shortcut",
    "three_shortcut": "3-shortcut",
}
PLOTTED = ("excess", "final_loss")


def reference(both: PredictedAndMeasured, quantity: str) -> float:
    """Return a predicted number."""
    return both.predicted.value(quantity=quantity)


def floor_of(both: PredictedAndMeasured) -> float:
    """Return the loss that is subtracted from plotted losses."""
    above = len(both.measured.where(quantity="excess"))
    return reference(both, "optimal_loss") if above else 0.0


def means_of(rows: Rows) -> Rows:
    """Keep the mean at every rate at which no run diverged."""
    names = [f"mean_{name}" for name in PLOTTED]
    return rows.where(lambda row: row["quantity"] in names and row["diverged"] == 0)


def prepared(both: PredictedAndMeasured) -> PredictedAndMeasured:
    """Return both sides with the rows that claims select: ``loss``, ``rate``, ``mean``.

    A loss at the last rate tried is not known to be the least, unless all rates end
    alike: then it is known, and no rate is best. A network's best rate lies between
    the neighbours of the best one tried, which more networks do not change.
    """
    floor = floor_of(both)
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in both.measured:
        groups.setdefault((row["network"], row["depth"]), []).append(row)
    ready = [row for rows in groups.values() for row in _group(Rows(rows), floor)]
    return PredictedAndMeasured(both.predicted, Rows.of_plain(ready))


def _group(rows: Rows, floor: float) -> list[dict]:
    means = means_of(rows)
    values = means.values() + floor
    flat = bool(len(means)) and float(values.max() / values.min()) - 1 < SAME
    edge = rows.only(quantity="log10_rate")["edge"]
    table: list[dict] = []
    for row in rows:
        labels = {k: row[k] for k in ("network", "depth", "trial") if k in row}
        if row["quantity"] in PLOTTED:
            table.append({**row, "quantity": "loss", "edge": edge and not flat})
            error = row.get("own_error")  # a step over the root of 12
            rate = {
                "quantity": "rate",
                # A network that always diverges has no best rate.
                "value": row.get("own_rate"),
                "error": None if error is None else math.sqrt(12) * error,
                "edge": row.get("own_edge", False),
            }
            table.append({**labels, **rate, "flat": flat})
        elif row["quantity"] in ("escape", "fastest_escape"):
            table.append(dict(row))
    return table + [{**row, "quantity": "mean", "floor": floor} for row in means]


def on_losses(test: Test) -> Test:
    """Return a test that judges the prepared rows."""
    return lambda both: test(prepared(both))


def common(tables: Iterable[Rows], least: int = 0) -> list[int]:
    """Return the depths that all tables have, from ``least`` up."""
    depths = [set(table.levels("depth")) for table in tables]
    return sorted(d for d in set.intersection(*depths) if d >= least)


def gap(
    first: str,
    second: str,
    *,
    quantity: str = "loss",
    least: int = 0,
    deepest: bool = False,
) -> Read:
    """Read the mean of the first network minus the second, over common depths.

    Losses are in decades; rates are left out where all end alike for one of the two.
    Depths from ``least`` on count, or only the deepest. The quantity is ``loss``,
    ``rate`` or ``fastest_escape``.
    """
    title = {
        "loss": "log10 final loss",
        "rate": "log10 best rate",
        "fastest_escape": "log10 steps to leave the start, at the fastest rate",
    }[quantity]
    log = quantity != "rate"

    def read(both: PredictedAndMeasured) -> Quantity:
        rows = both.measured.where(lambda row: not row.get("flat"), quantity=quantity)
        tables = [rows.where(network=name) for name in (first, second)]
        depths = common(tables, least)[-1 if deepest else 0 :]
        name = f"{title}, {NAMES[first]} less {NAMES[second]}"
        if not depths:
            return sampled(name, [], note="no depths at which a rate is best")
        where = f"depth {depths[-1]}" if len(depths) == 1 else f"{len(depths)} depths"
        parts = [
            by_network(table.where(lambda row: row["depth"] in depths), log=log)
            for table in tables
        ]
        return parts[0].minus(parts[1]).mean(f"{name}, {where}")

    return read


def slower_to_leave(first: str, second: str) -> Read:
    """Read how many more steps the first network needs to leave its start, in decades.

    Runs of equal seed, depth and rate are compared where at least one of both left. A
    run that never leaves counts with all its steps, which is fewer than it needs.
    """
    name = f"log10 steps to leave the start, {NAMES[first]} less {NAMES[second]}"

    def read(both: PredictedAndMeasured) -> Quantity:
        rows = both.measured.where(quantity="escape")
        tables = [
            {tuple(r[k] for k in ("trial", "depth", "rate")): r for r in part}
            for part in (rows.where(network=n) for n in (first, second))
        ]
        both_tried = tables[0].keys() & tables[1].keys()
        pairs = [(tables[0][key], tables[1][key]) for key in sorted(both_tried)]
        pairs = [pair for pair in pairs if any(row["left"] for row in pair)]
        parts = [by_network(Rows(part), log=True) for part in zip(*pairs, strict=True)]
        if not parts:
            return sampled(name, [], note="no network left its start")
        return parts[0].minus(parts[1]).mean(f"{name}, equal rates")

    return read


def over_best(network: str, depth: int, rate: float) -> Read:
    """Read how much higher the final loss is at a rate than at the best, as a share.

    Both means are of the same networks, so that their errors add in the worst case.
    """

    def read(both: PredictedAndMeasured) -> Quantity:
        rows = both.measured.where(quantity="mean", network=network, depth=depth)
        best = rows[int(np.argmin(rows.values()))]
        (here,) = rows.where(rate=rate)
        whole = best["value"] + best["floor"]
        n = min(here["finished"], best["finished"])
        name = f"final loss over that at the best rate, less 1, {NAMES[network]}"
        if here == best:  # the rate itself has no error
            return known(name, 0.0)
        error = (here["error"] + best["error"]) / whole
        return Sampled(
            name=name,
            value=(here["value"] - best["value"]) / whole,
            stderr=error if n > 1 else math.nan,
            freedom=n - 1,
            networks=n,
        )

    return read


def deepest(rows: Rows) -> Rows:
    """Keep the rows of the greatest depth."""
    return rows.where(depth=max(rows.levels("depth"), default=None))


def deep(row: Row) -> bool:
    """Return whether a row is of a deep network."""
    return row["depth"] >= DEEP


def rate_matters(row: Row) -> bool:
    """Return whether a row is of a deep network whose loss depends on the rate."""
    return deep(row) and not row["flat"]


ALL_DEPTHS = Choice(
    what="losses count on average over the depths plotted, in decades",
    why="the paper names no depths, and single networks spread over decades",
)
FROM_EIGHT = Choice(
    what=f"deep is from {DEEP} matrices up",
    why="the paper does not say; fewer are at most four units of two",
)
RATES_MATTER = Choice(
    what="a depth counts where the final losses at all rates differ by a tenth or more",
    why="the caption leaves out rates where all end basically the same",
)
NO_DIVERGENCE = Choice(
    what="all learning rates are those tried at which no network diverged",
    why="a loss that overflows is the same as no other",
)
WITHIN = below(SAME, source="ours", why="a tenth of the loss is what a plot shows")
BEYOND = above(SAME, source="ours", why=WITHIN.why)


def lowest(rivals: Iterable[str]) -> Test:
    """Judge whether 2-shortcut networks end lower than each rival."""
    tests = [inside(gap(name, "two_shortcut"), above(0)) for name in rivals]
    return on_losses(every(*tests))


def faster(rivals: Iterable[str]) -> Test:
    """Judge whether deep 2-shortcut networks take higher rates than each rival."""
    tests = [
        inside(gap("two_shortcut", name, quantity="rate", least=DEEP), above(0))
        for name in rivals
    ]
    return on_losses(every(*tests))


def any_rate(network: str, depth: int) -> Test:
    """Judge whether all rates reach one loss at a depth, but not at the least depth."""
    rows = measured("mean", lambda row: row["finished"] > 1, network=network)
    same = each(
        "rate",
        rows.at(depth=depth),
        lambda rate: inside(over_best(network, depth, rate), WITHIN),
        name=network,
    )

    def sensitive(both: PredictedAndMeasured) -> Judgement:
        table = rows(both)
        first = min(table.levels("depth"), default=depth)
        rates = table.where(depth=first).levels("rate")
        if first == depth or not rates:
            return undecided("there is no shallower network to compare with", network)
        return inside(over_best(network, first, rates[0]), BEYOND)(both)

    return on_losses(against(same, sensitive))

"""Numbers at common levels of the loss and along single runs, by network."""

from collections.abc import Callable

import numpy as np

from theodolite.core import Roads, Row, Rows, points

# "The beginning" ends where this fraction of the excess loss is left.
BEGINNING = 0.2
# Levels from this fraction of the excess loss down are near a minimiser.
NEAR = 0.01


def depths_of(measured: Rows) -> list[int]:
    """Return the paper's depth, which alone has single runs, then the others."""
    first = measured.where(task="run").levels("depth")
    every = measured.where(task="levels").levels("depth")
    return [*first, *(depth for depth in every if depth not in first)]


def at_levels(which: int) -> Callable[[Rows], Rows]:
    """Return what keeps the rows at levels of one of the depths.

    Runs that start below a level, or end above it, have no row there; levels that
    fewer than half of a kind's runs passed are left out.
    """

    def keep(measured: Rows) -> Rows:
        depths = depths_of(measured)
        if len(depths) <= which:
            return Rows()
        rows = measured.where(task="levels", depth=depths[which])
        return _passed(rows)

    return keep


def _passed(rows: Rows) -> Rows:
    runs = {kind: len(rows.where(kind=kind).levels("trial"))
            for kind in rows.levels("kind")}  # fmt: skip
    found = rows.where(lambda row: row.get("fraction") is not None)
    count: dict[tuple, int] = {}
    for row in found:
        key = row["quantity"], row["kind"], row["fraction"]
        count[key] = count.get(key, 0) + 1
    return found.where(
        lambda row: (
            2 * count[row["quantity"], row["kind"], row["fraction"]]
            >= runs[row["kind"]]
        )
    )


def late(measured: Rows) -> Rows:
    """Return each network's mean logarithm of the ratio near a minimiser.

    It is a mean over the logarithm of the excess loss, so that the spacing of levels
    does not count. Networks that lack a level are left out.
    """
    rows = at_levels(0)(measured).where(quantity="ratio")
    rows = rows.where(lambda row: row["fraction"] <= NEAR)
    levels = rows.levels("fraction")
    found: list[Row] = []
    for kind in rows.levels("kind"):
        for trial in rows.where(kind=kind).levels("trial"):
            mine = rows.where(kind=kind, trial=trial)
            if mine.levels("fraction") == levels and len(levels) > 1:
                found.append({**_mean_log(mine), "kind": kind, "trial": trial})
    return Rows(found)


def _mean_log(rows: Rows) -> Row:
    order = np.argsort(rows.values("fraction"))
    x = np.log10(rows.values("fraction")[order])
    value, error = rows.values()[order], rows.values("error")[order]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log10(value)
        bounds = np.where(error < value, -np.log10(1 - error / value), np.inf)
    width = x[-1] - x[0]
    return {
        "quantity": "late_ratio",
        "value": float(np.trapezoid(logs, x) / width),
        "error": float(np.trapezoid(bounds, x) / width),
    }


def drops(measured: Rows) -> Rows:
    """Return by how much each 2-shortcut network's index falls, early and later."""
    rows = measured.where(
        task="levels", kind="two_shortcut", depth=depths_of(measured)[0]
    ).where(quantity="index")
    found: list[Row] = []
    for trial in rows.levels("trial"):
        mine = sorted(rows.where(trial=trial), key=lambda row: -row["loss"])
        start, later = mine[0], [r for r in mine if r.get("fraction") is not None]
        after = [row for row in later if row["fraction"] <= BEGINNING]
        if start.get("step") != 0 or not after:
            continue
        lowest = min(after, key=lambda row: row["value"])
        for name, a, b in (
            ("early_drop", start, after[0]),
            ("later_drop", after[0], lowest),
        ):
            found.append(
                {
                    "quantity": name,
                    "trial": trial,
                    "value": a["value"] - b["value"],
                    "error": a["error"] + b["error"],
                }
            )
    return Rows(found)


def peaks(measured: Rows) -> Rows:
    """Return when each single run's gradient peaks, and how far its index has dropped.

    Column ``error`` covers the steps between Hessians on both sides of the peak.
    """
    rows = measured.where(task="run")
    found: list[Row] = []
    for trial in rows.levels("trial"):
        mine = rows.where(trial=trial)
        found += [{**row, "trial": trial} for row in _peak(mine)]
    return Rows(found)


def _peak(rows: Rows) -> list[Row]:
    index, gradient = (rows.where(quantity=name) for name in ("index", "gradient"))
    steps, values = index.values("step"), index.values()
    drop = values[0] - values.min()
    made = (values[0] - values) / drop if drop > 0 else np.full_like(values, np.nan)
    at = int(np.argmax(gradient.values()))
    around = made[max(at - 1, 0) : at + 2]
    unsure = 2 * float(index.values("error").max()) / drop if drop > 0 else np.inf
    found: list[Row] = [
        {"quantity": "peak", "value": steps[at], "error": np.diff(steps).max()},
        {
            "quantity": "drop_at_peak",
            "value": made[at],
            "error": float(np.abs(around - made[at]).max()) + unsure,
        },
    ]
    before = rows.where(quantity="curvature")[: max(at, 0)]
    if len(before):
        mean, error = (float(before.values(n).mean()) for n in ("value", "error"))
        found.append({"quantity": "curvature_before", "value": mean, "error": error})
    return found


def level_table(quantities: tuple[str, ...], *, log: bool) -> Callable[[Roads], Rows]:
    """Return what makes means and spreads over networks at each depth and level."""

    def table(roads: Roads) -> Rows:
        found: list[Rows] = []
        for which in range(len(depths_of(roads.measured))):
            rows = at_levels(which)(roads.measured)
            found += [
                points(
                    rows.where(quantity=name),
                    ("quantity", "kind", "depth", "fraction"),
                    log=log,
                )
                for name in quantities
            ]
        return Rows.joined(found)

    return table


def run_table(roads: Roads) -> Rows:
    """Return the first single run, and the step at which its gradient peaks."""
    rows = roads.measured.where(task="run")
    first = rows.levels("trial")[0]
    return rows.where(trial=first) + peaks(rows.where(trial=first))


def compare(roads: Roads) -> list[Row]:
    """Closed form at zero beside the first state of 2-shortcut networks."""
    starts = roads.measured.where(task="levels", kind="two_shortcut", step=0)
    return [
        {
            "label": f"{row['quantity']} at the start, 2-shortcut, "
            f"depth {row['depth']}",
            "predicted": roads.predicted.value(
                quantity=row["quantity"], depth=row["depth"]
            ),
            "measured": row["value"],
            "error": row["error"],
        }
        for name in ("largest", "small", "index")
        for row in points(starts.where(quantity=name), ("quantity", "depth"))
    ]

"""How claims about trained networks are decided: pairs of seeds and Student's t."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from theodolite.core import Estimate, Number, Row, Rows, estimate
from theodolite.studies.committed_run import COMMITTED

# Chance among ten classes: what a diverged network is worth.
CHANCE = 0.9
LEVEL = 0.05
TOO_FEW = 3


def longest(rows: Rows) -> Rows:
    """Return the runs of the training length that most networks had."""
    lengths = rows.where(quantity="parameters").column("epochs")
    if not lengths:
        return Rows()
    most = max(set(lengths), key=lambda e: (lengths.count(e), e))
    return rows.where(epochs=most)


def complete(rows: Rows, quantity: str) -> Rows:
    """Return the last readings of networks that trained to the end."""
    return rows.where(
        lambda row: row.get("epoch") == row.get("epochs"),
        quantity=quantity,
        status="finished",
    )


def final_errors(rows: Rows) -> dict[tuple[int, int], dict[int, float]]:
    """Return the last test error by (shortcut, depth) and trial.

    A network that diverged counts as chance; one that was stopped does not count.
    """
    found: dict[tuple[int, int], dict[int, float]] = {}
    for row in complete(rows, "test_error"):
        cell = found.setdefault((row["shortcut"], row["depth"]), {})
        cell[row["trial"]] = row["value"]
    for row in rows.where(quantity="parameters", status="diverged"):
        cell = found.setdefault((row["shortcut"], row["depth"]), {})
        cell[row["trial"]] = CHANCE
    return found


def difference(first: dict[int, float], second: dict[int, float]) -> Estimate | None:
    """Return first minus second over the trials that both have."""
    both = sorted(first.keys() & second.keys())
    return estimate([first[t] - second[t] for t in both]) if both else None


def direction(found: Estimate | None, *, comparisons: int = 1) -> int:
    """Return the sign of a mean if Student's t tells it from zero, else 0.

    Args:
        found: Mean over networks.
        comparisons: Number of tests in one claim; the level is divided by it.
    """
    from scipy.stats import t as student

    if found is None or found.n < TOO_FEW or not np.isfinite(found.mean):
        return 0
    bar = student.ppf(1 - LEVEL / comparisons / 2, found.n - 1) * found.stderr
    return int(np.sign(found.mean)) if abs(found.mean) > bar else 0


def number(found: Estimate) -> Number:
    """Return a mean as a number of a verdict."""
    return Number(found.mean, found.stderr if found.n > 1 else None)


def slopes(rows: Rows, depths: Sequence[int]) -> Estimate | None:
    """Return the exponent of a value in depth, fitted network family by family.

    A family is the networks of one trial; only those with every depth count.
    """
    if len(depths) < 2:
        return None
    found = []
    for trial in rows.levels("trial"):
        mine = rows.where(trial=trial)
        value = dict(zip(mine.column("depth"), mine.values(), strict=True))
        if set(depths) <= value.keys():
            y = np.log([value[d] for d in depths])
            found.append(float(np.polyfit(np.log(depths), y, 1)[0]))
    return estimate(found) if found else None


def beside(
    predicted: Rows, measured: Rows, quantity: str, name: str, **labels: Any
) -> list[Row]:
    """Set a quantity by theory beside the mean over networks, depth by depth."""
    rows: list[Row] = []
    for row in predicted.where(quantity=quantity):
        at = {"source": row["source"], "depth": row["depth"], **labels}
        found = measured.where(quantity=quantity, **at)
        if len(found):
            mean = estimate(found.values())
            where = "CIFAR-10" if row["source"] == COMMITTED else "this run"
            rows.append(
                {
                    "label": f"{name}, depth {row['depth']}, {where}",
                    "predicted": row["value"],
                    "measured": mean.mean,
                    "error": mean.stderr if mean.n > 1 else row["error"],
                }
            )
    return rows

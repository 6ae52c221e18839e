"""Readings of trained networks that claims use, and tests on them.

A network is dead if its loss is not finite or ends above that of chance. Dead ones
enter no mean; the claims on stability count them, with those that stalled, as lost. One
that was stopped early counts with the values that it reached.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from theodolite.core import (
    Choice,
    Read,
    ReadAs,
    Region,
    Row,
    Rows,
    Select,
    Test,
    below,
    counted,
    each,
    every,
    inside,
    measured,
    named_rows,
    our_margin,
    readings,
)
from theodolite.core import difference as gap

from .image_config import MODIFIED, ORIGINAL, RATES

# A run has stalled if its final loss is above this share of chance's loss.
STALLED = 0.5
_ENDED = ("finished", "diverged")


def by_run(rows: Rows) -> Rows:
    """Return one number per network for each quantity, in the table's precision.

    ``log_loss`` and ``mean_loss`` are means of the training loss over all epochs, of
    its decimal logarithm and of itself; ``early_…`` those over the first third, before
    the rate falls, and ``first_…`` those over the first tenth. ``final_loss``, and
    ``accuracy`` in percent by running and ``accuracy_batch`` by batch statistics, are
    of the last epoch. ``lost`` is 1 where a run died or stalled; a dead one has no
    other number.
    """
    return by_precision(of_the_table(rows))


def by_precision(rows: Rows) -> Rows:
    """Return the same in every precision, as a label; its pairs share their start."""
    return Rows(row for run in _runs(rows) for row in _numbers(run))


def of_the_table(rows: Rows) -> Rows:
    """Return the rows in the precision in which most networks were trained."""
    counts = Counter(run[0].get("precision") for run in _runs(rows))
    kept = counts.most_common(1)[0][0] if counts else None
    return rows.where(lambda row: row.get("precision") == kept)


def curves_of(rows: Rows) -> Rows:
    """Return training losses in the table's precision; diverged ones at chance."""
    return Rows(
        {**_labels(run[0]), "quantity": "train_loss", "epoch": epoch, "value": loss}
        for run in _runs(of_the_table(rows))
        for epoch, loss in enumerate(_losses(run, math.log(run[0]["classes"])), 1)
    )


def _runs(rows: Rows) -> Iterator[list[Row]]:
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        network = ("dataset", "rate", "added_identity", "trial", "precision")
        groups.setdefault(tuple(row.get(k) for k in network), []).append(row)
    return iter(groups.values())


def _numbers(run: list[Row]) -> list[Row]:
    first, status = run[0], run[0]["status"]
    chance = math.log(first["classes"])
    losses = _losses(run, chance)
    third, ended = first["epochs"] // 3, status in _ENDED
    whole = ended and len(losses) == first["epochs"]
    dead = status == "diverged" or (whole and losses[-1] >= chance)
    stalled = whole and losses[-1] > STALLED * chance
    numbers: dict[str, float] = {"lost": float(dead or stalled)} if whole else {}
    for name, epochs in (("early", third), ("first", -(-first["epochs"] // 10))):
        if not dead and len(losses) >= epochs:
            numbers[f"{name}_log_loss"] = _mean_log(losses[:epochs])
            numbers[f"{name}_mean_loss"] = math.fsum(losses[:epochs]) / epochs
    if not dead and whole:
        numbers["log_loss"] = _mean_log(losses)
        numbers["mean_loss"] = math.fsum(losses) / len(losses)
        numbers["final_loss"] = losses[-1]
        for ending in ("", "_batch"):
            tests = (r for r in run if r["quantity"] == f"test_error{ending}")
            error = {r["epoch"]: r["value"] for r in tests}.get(first["epochs"])
            if error is not None:
                numbers[f"accuracy{ending}"] = 100 * (1 - error)
    return [
        row
        for name, value in numbers.items()
        for row in named_rows({name: value}, _error(name, value), **_labels(first))
    ]


def _labels(row: Row) -> Row:
    numbers = {k: row[k] for k in ("dataset", "rate", "added_identity", "status")}
    numbers["precision"] = row.get("precision")
    # Pairs at two rates share no seed, so every pair has a different name.
    return {**numbers, "trial": f"{row['rate']:g}/{row['trial']}"}


def _losses(run: list[Row], chance: float) -> list[float]:
    """Return the loss of every epoch; after a divergence, the loss of chance."""
    read = {
        row["epoch"]: row["value"] for row in run if row["quantity"] == "train_loss"
    }
    epochs = run[0]["epochs"]
    if run[0]["status"] == "diverged":
        read = {e: chance if v is None or not math.isfinite(v) else v
                for e, v in read.items()}  # fmt: skip
        return [read.get(epoch, chance) for epoch in range(1, epochs + 1)]
    return [read[epoch] for epoch in range(1, epochs + 1) if epoch in read]


def _mean_log(losses: list[float]) -> float:
    return math.fsum(math.log10(loss) for loss in losses) / len(losses)


def _error(name: str, value: float) -> float:
    """Return the rounding error of float32; shares of test images have none."""
    if name.endswith("log_loss"):
        return 2.0**-23 / math.log(10)
    return 2.0**-23 * value if name.endswith("_loss") else 0.0


def reading(quantity: str, name: str) -> Select:
    """Select a number of every network."""
    return measured(quantity).out_of(by_run).called(name)


SPEED = (
    reading("log_loss", "mean log10 training loss"),
    reading("mean_loss", "mean training loss"),
)
EARLY, FIRST = (
    (
        reading(f"{name}_log_loss", f"mean log10 training loss of the first {part}"),
        reading(f"{name}_mean_loss", f"mean training loss of the first {part}"),
    )
    for name, part in (("early", "third"), ("first", "tenth"))
)
FINAL = reading("final_loss", "final training loss")
ACCURACY = reading("accuracy", "accuracy in percent")
BATCH_ACCURACY = reading("accuracy_batch", "accuracy in percent by batch statistics")
LOST = reading("lost", "lost runs")
ANY_PRECISION = (SPEED[0].out_of(by_precision), SPEED[1].out_of(by_precision))


def pair(rows: Select, **labels: object) -> tuple[Select, Select]:
    """Return the modified and the original networks of a selection."""
    chosen = rows.at(**labels)
    return chosen.at(added_identity=MODIFIED), chosen.at(added_identity=ORIGINAL)


LOST_COUNT = Choice(
    what="a run whose loss is not finite, or ends above that of chance, is dead and "
    "enters no mean; for stability, one that ends above "
    f"{STALLED:g} of chance's loss is lost as well",
    why="the paper leaves diverged runs out of its means, and counts them",
)
SAME_ACCURACY = our_margin(
    0.5, "half a point, twice the printed deviation over trials at the best rate"
)


def modified_less_original(rows: Select, **labels: Any) -> Read:
    """Read a paired difference: networks of one start, on the same batches."""
    at = f", rate {labels['rate']:g}" if "rate" in labels else ""
    name = f"{rows} of modified less original{at}"
    return gap(*pair(rows, **labels), name=name)


def on_both_axes(make: Callable[[Select], Test], rows: tuple[Select, Select]) -> Test:
    """Judge speed as the mean over epochs of the loss, on both of its axes."""
    log, linear = map(make, rows)
    return readings(
        ReadAs(
            "logarithmic axis",
            "Speed is the mean over epochs of the logarithm of the training loss.",
            "the axis of figures 3 to 6; the paper gives no number for speed",
            log,
        ),
        ReadAs(
            "linear axis",
            "Speed is the mean over epochs of the training loss.",
            "the axis of figure 2(d)",
            linear,
        ),
    )


def faster(rows: tuple[Select, Select], **labels: Any) -> Test:
    """Judge whether the modified network is at the lower loss over all epochs."""
    return on_both_axes(partial(_lower, **labels), rows)


def _lower(rows: Select, **labels: Any) -> Test:
    return inside(modified_less_original(rows, **labels), below(0))


def faster_at_each_rate(rows: tuple[Select, Select]) -> Test:
    """Judge whether the modified network is at the lower loss at every rate."""
    return on_both_axes(
        lambda axis: each(
            "rate", axis, lambda rate: _lower(axis, rate=rate), least=len(RATES)
        ),
        rows,
    )


def same_accuracy(*rates: float, **labels: Any) -> Test:
    """Judge whether accuracies differ by less than a margin, in both directions."""
    return every(
        inside(modified_less_original(rows, rate=rate, **labels), SAME_ACCURACY)
        for rate in rates
        for rows in (ACCURACY, BATCH_ACCURACY)
    )


def lost_share(model: float, region: Region, **labels: Any) -> Test:
    """Judge whether the share of runs that diverged or stalled is in a region."""
    at = f", rate {labels['rate']:g}" if "rate" in labels else ""
    name = f"share of {'modified' if model else 'original'} runs that are lost{at}"
    rows = LOST.at(added_identity=model, **labels)
    return inside(counted(rows, lambda row: row["value"] == 1, name=name), region)

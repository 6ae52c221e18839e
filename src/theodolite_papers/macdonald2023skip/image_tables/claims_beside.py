"""Our cells of table 1 beside the printed ones."""

from collections.abc import Callable

from theodolite.core import (
    Number,
    PredictedAndMeasured,
    Quantity,
    Read,
    Region,
    Select,
    Test,
    by_network,
    combined,
    every,
    group_means,
    inside,
)

from ..shared.image_config import MODIFIED, ORIGINAL
from ..shared.image_rows import ACCURACY, BATCH_ACCURACY, FINAL
from ..shared.printed_reads import model, sampled_from


def as_printed(rows: Select, quantity: str, margin: Region) -> Callable[[float], Test]:
    """Judge whether cells of ours at a rate are the printed ones within a margin."""

    def at(rate: float) -> Test:
        return every(
            *(
                inside(_from_print(rows, quantity, rate, scale), margin)
                for scale in (ORIGINAL, MODIFIED)
            )
        )

    return at


def _from_print(rows: Select, quantity: str, rate: float, scale: float) -> Read:
    """Read our mean less the printed one: log10 of a loss, points of an accuracy."""
    log = quantity == "printed_loss"
    word = "log10 final loss" if log else "accuracy"
    name = f"{word} less printed, {model(scale)}, rate {rate:g}"

    def read(both: PredictedAndMeasured) -> Quantity:
        mine = by_network(rows.at(rate=rate, added_identity=scale)(both), log=log)
        cell = {"table": 1, "rate": rate, "added_identity": scale}
        printed = sampled_from(both.predicted.only(quantity=quantity, **cell), log=log)
        return combined(name, [mine.mean(name), printed], (1.0, -1.0))

    return read


def loss_cells(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return our final losses, each under the name of its cell and what is printed."""
    return _cells(both, FINAL, "printed_loss", "")


def accuracy_cells(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return our accuracies likewise, by batch and by running statistics."""
    batch = _cells(both, BATCH_ACCURACY, "printed_accuracy", "")
    running = _cells(both, ACCURACY, "printed_accuracy", "by running statistics, ")
    return batch | running


def _cells(
    both: PredictedAndMeasured, rows: Select, quantity: str, how: str
) -> dict[str, Number]:
    ours = group_means(rows.at(dataset="cifar10")(both), ("rate", "added_identity"))
    found: dict[str, Number] = {}
    for row in ours:
        labels = {k: row[k] for k in ("rate", "added_identity")}
        cell = both.predicted.only(quantity=quantity, table=1, **labels)
        printed = f"printed {cell['value']:g} ± {cell['spread']:g}"
        name = f"{model(row['added_identity'])} at {row['rate']:g}, {how}{printed}"
        several = row["n"] > 1
        name = name if several else f"{name}; of one network"
        found[name] = Number(row["value"], row["error"] if several else None)
    return found

"""Our cells of table 1 beside the printed ones."""

from collections.abc import Callable

from theodolite.core import (
    Number,
    Quantity,
    Read,
    Region,
    Roads,
    Select,
    Test,
    by_network,
    combined,
    every,
    inside,
    points,
)
from theodolite.studies.macdonald2023skip.shared.image_config import MODIFIED, ORIGINAL
from theodolite.studies.macdonald2023skip.shared.image_rows import (
    ACCURACY,
    BATCH_ACCURACY,
)
from theodolite.studies.macdonald2023skip.shared.printed_reads import (
    model,
    sampled_from,
)


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

    def read(roads: Roads) -> Quantity:
        mine = by_network(rows.at(rate=rate, added_identity=scale)(roads), log=log)
        cell = {"table": 1, "rate": rate, "added_identity": scale}
        printed = sampled_from(roads.predicted.only(quantity=quantity, **cell), log=log)
        return combined(name, [mine.mean(name), printed], (1.0, -1.0))

    return read


def both_accuracies(roads: Roads) -> dict[str, Number]:
    """Return accuracies in percent by running and by batch statistics."""
    found: dict[str, Number] = {}
    for rows, word in ((ACCURACY, "running"), (BATCH_ACCURACY, "batch")):
        for row in points(rows(roads), ("rate", "added_identity")):
            name = f"{model(row['added_identity'])} at {row['rate']:g}, {word}"
            found[name] = Number(row["value"], row["error"] if row["n"] > 1 else None)
    return found

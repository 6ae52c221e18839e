"""Curves of training as figures draw them, and cells beside the printed ones."""

from collections.abc import Callable

from theodolite.core import PredictedAndMeasured, Row, Rows, group_means

from .image_config import MODIFIED, ORIGINAL
from .image_rows import BATCH_ACCURACY, FINAL, curves_of
from .printed_reads import model

# Words for a kind of cell, the printed quantity, and ours.
CELLS = (
    ("loss", "printed_loss", FINAL),
    ("accuracy", "printed_accuracy", BATCH_ACCURACY),
)


def curve_table(both: PredictedAndMeasured) -> Rows:
    """Return training losses by rate, model and epoch: geometric means over networks.

    ``low`` and ``high`` are one standard deviation of the logarithm away. Epochs that
    no run reached are not drawn; ``n`` says how many did. Networks that diverged count.
    """
    found = group_means(
        curves_of(both.measured), ("rate", "added_identity", "epoch"), log=True
    )
    return Rows(
        {
            **{k: row[k] for k in ("rate", "added_identity", "epoch", "n")},
            "value": 10 ** row["value"],
            "low": 10 ** (row["value"] - row["spread"]),
            "high": 10 ** (row["value"] + row["spread"]),
        }
        for row in found
        if row["n"]
    )


def compare_table(
    table: int, dataset: str
) -> Callable[[PredictedAndMeasured], list[Row]]:
    """Set a table as printed beside ours, cell by cell, and counts of parameters.

    Cells are compared only where networks were trained on the table's images.
    """

    def compare(both: PredictedAndMeasured) -> list[Row]:
        rows: list[Row] = []
        for word, printed, mine in CELLS:
            found = group_means(
                mine.at(dataset=dataset)(both), ("rate", "added_identity")
            )
            for cell in both.predicted.where(quantity=printed, table=table):
                labels = {k: cell[k] for k in ("rate", "added_identity")}
                told = f"{word}, {model(cell['added_identity'])}, rate {cell['rate']:g}"
                rows += [_beside(told, cell["value"], row)
                         for row in found.where(**labels)]  # fmt: skip
        return rows + _counts(both)

    return compare


def _counts(both: PredictedAndMeasured) -> list[Row]:
    wanted = both.predicted.only(quantity="parameters")["value"]
    counted = both.measured.where(quantity="parameters")
    return [
        _beside(f"parameters, {model(scale)}", wanted, row)
        for scale in (ORIGINAL, MODIFIED)
        for row in group_means(counted.where(added_identity=scale), ("added_identity",))
    ]


def _beside(label: str, predicted: float, row: Row) -> Row:
    error = row["error"] if row["n"] > 1 else None
    return {
        "label": label,
        "predicted": predicted,
        "measured": row["value"],
        "error": error,
    }

"""Our cells of table 1 beside the printed ones."""

from theodolite.core import Roads, Row, Rows, points
from theodolite.studies.macdonald2023skip.shared.image_comparison import (
    CELLS,
    compare_table,
    curve_table,
)

__all__ = ["cell_table", "compare", "curve_table"]

DATASET = "cifar10"
compare = compare_table(1, DATASET)


def cell_table(roads: Roads) -> Rows:
    """Return our cells and those of table 1: loss and error by rate and model.

    Errors in percent are what accuracies leave, to be told apart on a log axis.
    """
    rows: list[Row] = []
    for word, printed, mine in CELLS:
        cells = roads.predicted.where(quantity=printed, table=1)
        rows += [_cell(row, word, "printed") for row in cells]
        ours = points(mine.at(dataset=DATASET)(roads), ("rate", "added_identity"))
        rows += [_cell(row, word, "ours") for row in ours]
    return Rows(rows)


def _cell(row: Row, word: str, source: str) -> Row:
    labels = {k: row[k] for k in ("rate", "added_identity", "value", "spread", "n")}
    if word == "accuracy":
        labels["value"] = 100 - labels["value"]
    return {"cell": word, "source": source, **labels}

"""Draw figures 3 and 4, and table 1, from saved rows."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, group_means

from ..shared.image_figure import CELLS, NAMES, compare_table

DATASET = "cifar10"
compare = compare_table(1, DATASET)


def cell_table(both: PredictedAndMeasured) -> Rows:
    """Return our cells and those of table 1: loss and error by rate and model.

    Errors are 100 % minus the accuracy, which a log axis separates better.
    """
    rows: list[Row] = []
    for word, printed, mine in CELLS:
        cells = both.predicted.where(quantity=printed, table=1)
        rows += [_cell(row, word, "printed") for row in cells]
        ours = group_means(mine.at(dataset=DATASET)(both), ("rate", "added_identity"))
        rows += [_cell(row, word, "ours") for row in ours]
    return Rows(rows)


def _cell(row: Row, word: str, source: str) -> Row:
    labels = {k: row[k] for k in ("rate", "added_identity", "value", "spread", "n")}
    if word == "accuracy":
        labels["value"] = 100 - labels["value"]
    return {"cell": word, "source": source, **labels}


def draw_cells(table: Rows) -> "figures.Figure":
    """Draw final loss and test error by rate, printed and ours side by side."""
    figure, panels = figures.new_figure(7.0, 3.2, panels=(1, 2))
    for panel, cell in zip(panels, ("loss", "accuracy"), strict=True):
        _panel(panel, table.where(cell=cell))
    figures.log_axis(panels[0], "y")
    figures.log_axis(panels[1], "y", ticks=(5, 10, 20, 50))
    panels[0].set_ylabel("training loss of the last epoch")
    panels[1].set_ylabel("test error (%)")
    figures.shared_legend(figure)
    return figure


def _panel(panel: "figures.Axes", rows: Rows) -> None:
    rates = rows.levels("rate")
    series = [(word, scale) for word in ("printed", "ours") for scale in NAMES]
    for place, (word, scale) in enumerate(series):
        mine = rows.where(added_identity=scale, source=word)
        shift = 0.14 * (place - 1.5)
        figures.band(
            panel,
            [rates.index(rate) + shift for rate in mine.column("rate")],
            mine.values(),
            mine.values("spread"),
            style=figures.kind_style(NAMES[scale]),
            label=NAMES[scale] if word == "ours" else None,
            bound=[word == "printed"] * len(mine),
            means="hollow: as printed",
            kind="bars",
            line=False,
        )
    panel.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    panel.set_xlabel("rate")

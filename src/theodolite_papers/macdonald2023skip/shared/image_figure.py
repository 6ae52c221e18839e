"""Training curves of original and modified networks, and cells beside printed ones."""

from collections.abc import Callable

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row, group_means
from theodolite.studies import Drawing

from .image_claims import BATCH_ACCURACY, FINAL, curves_of
from .image_config import MODIFIED, ORIGINAL
from .printed_tables import model

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
    means = group_means(
        curves_of(both.measured), ("rate", "added_identity", "epoch"), log=True
    )
    return Rows(
        {
            **{k: row[k] for k in ("rate", "added_identity", "epoch", "n")},
            "value": 10 ** row["value"],
            "low": 10 ** (row["value"] - row["spread"]),
            "high": 10 ** (row["value"] + row["spread"]),
        }
        for row in means
        if row["n"]
    )


def compare_table(
    table: int, dataset: str
) -> Callable[[PredictedAndMeasured], list[Row]]:
    """Return a function that compares a printed table with ours, cell by cell.

    Cells are compared only where networks were trained on the table's images.
    """

    def compare(both: PredictedAndMeasured) -> list[Row]:
        rows: list[Row] = []
        for word, printed, mine in CELLS:
            means = group_means(
                mine.at(dataset=dataset)(both), ("rate", "added_identity")
            )
            for cell in both.predicted.where(quantity=printed, table=table):
                labels = {k: cell[k] for k in ("rate", "added_identity")}
                title = (
                    f"{word}, {model(cell['added_identity'])}, rate {cell['rate']:g}"
                )
                rows += [_beside(title, cell["value"], row)
                         for row in means.where(**labels)]  # fmt: skip
        wanted = both.predicted.only(quantity="parameters")["value"]
        for scale in (ORIGINAL, MODIFIED):
            counted = both.measured.where(quantity="parameters", added_identity=scale)
            for row in group_means(counted, ("added_identity",)):
                rows.append(_beside(f"parameters, {model(scale)}", wanted, row))
        return rows

    return compare


def _beside(label: str, predicted: float, row: Row) -> Row:
    error = row["error"] if row["n"] > 1 else None
    return compared_row(label, predicted, {**row, "error": error})


NAMES = {0.0: "original", 1.0: "modified"}


def draw_curves(table: Rows) -> "figures.Figure":
    """Draw the training loss against the epoch, with one deviation shaded."""
    rates = sorted(table.levels("rate"), reverse=True)
    columns = 2 if len(rates) > 1 else 1
    lines = max(1, -(-len(rates) // columns))
    figure, panels = figures.new_figure(
        3.4 * columns, 2.7 * lines, panels=(lines, columns), share_y=True
    )
    for panel in panels[len(rates) :]:
        panel.set_visible(False)
    for rate, panel in zip(rates, panels, strict=False):
        _panel(panel, table.where(rate=rate))
        panel.set_title(f"rate {rate:g}")
    return figure


def _panel(panel: "figures.Axes", rows: Rows) -> None:
    for scale in rows.levels("added_identity"):
        mine = rows.where(added_identity=scale)
        name = NAMES.get(scale, f"{scale:g} I added")
        style = figures.kind_style(name if name in figures.KINDS else "beside")
        epochs = mine.values("epoch")
        panel.fill_between(
            epochs,
            mine.values("low"),
            mine.values("high"),
            color=style.colour,
            alpha=0.18,
            linewidth=0,
        )
        runs = max(mine.column("n"))
        label = f"{name}, {runs} run{'s' if runs > 1 else ''}"
        figures.line(panel, epochs, mine.values(), style=style, label=label)
    figures.log_axis(panel, "y")
    panel.locator_params(axis="x", integer=True)
    panel.set_xlabel("epoch")
    panel.set_ylabel("training loss")
    figures.legend(panel)


CURVES = Drawing(
    "curves",
    "Training loss, a mean over each epoch, of original and modified networks "
    "by learning rate: geometric means over networks, one standard deviation "
    "shaded; in brackets their number. A network that diverged goes on at the "
    "loss of chance.",
    curve_table,
    draw_curves,
)

"""Collapse beside the norm, and errors over time under two losses, from rows."""

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    beside,
    group_means,
    measured,
)

from .config import FLIPPED, GIVEN

PROPERTIES = ("nc1", "nc2", "nc3", "nc4")
RUN = ("classes", "loss", "decay", "start")


def collapse(both: PredictedAndMeasured) -> Rows:
    """Return NC1 to NC4 and norms for each condition, and for untrained networks."""
    rows = both.measured.where(labels="given", loss="square")
    points: list[Row] = []
    for row in group_means(
        rows.where(quantity="norm", reading="product"), RUN, log=True
    ):
        labels = {key: row[key] for key in RUN}
        for name in PROPERTIES:
            kept = rows.where(quantity=name, stage="end", **labels)
            points += [
                {**point, "norm": 10 ** row["value"]}
                for point in group_means(kept, RUN)
            ]
    before = both.measured.where(stage="untrained")
    return Rows(points) + Rows.joined(
        group_means(before.where(quantity=name), ("classes", "stage"))
        for name in PROPERTIES
    )


def curves(both: PredictedAndMeasured) -> Rows:
    """Return test errors over time without decay, by loss and labels."""
    rows = both.measured.where(
        lambda row: row["epoch"] > 0 and row["labels"] in (GIVEN, FLIPPED),
        quantity="test_error",
        decay=0.0,
    )
    most = rows.where(classes=max(rows.levels("classes"), default=0))
    return group_means(most, ("labels", "loss", "start", "epoch"))


def _most_decay(rows: Rows) -> Rows:
    return rows.where(decay=max(rows.levels("decay")))


compare = beside(
    (
        "head as it is to centred means, {classes} classes",
        measured("raw_duality", stage="end", loss="square").keeping(_most_decay),
    )
)


TITLES = {
    "nc1": "NC1: variability in classes",
    "nc2": "NC2: means from a simplex",
    "nc3": "NC3: head from means",
    "nc4": "NC4: nearest mean disagrees",
}
KINDS = {"square": "square_loss", "cross_entropy": "cross_entropy"}
LOSSES = {"square": "square", "cross_entropy": "cross-entropy"}


def draw_collapse(table: Rows) -> "figures.Figure":
    """Draw the four numbers against the norm at the end."""
    figure, panels = figures.new_figure(7.0, 5.8, panels=(2, 2), share_x=True)
    counts = table.levels("classes")
    for panel, (quantity, title) in zip(panels, TITLES.items(), strict=True):
        for count in counts:
            if quantity == "nc2" and count == 2:
                continue  # nothing to see: opposite about their middle
            style = figures.ordered_style(count, counts)
            rows = table.where(quantity=quantity, classes=count)
            ends = rows.where(lambda row: row.get("stage") is None)
            figures.row_band(
                panel,
                ends,
                "norm",
                error="spread",
                style=style,
                label=f"{count} classes",
                kind="bars",
                line=False,
            )
            (before,) = rows.where(stage="untrained").values()
            figures.curve(
                panel,
                [min(ends.column("norm")), max(ends.column("norm"))],
                [before, before],
                style=style,
                means="untrained",
            )
        figures.log_axis(panel, "x")
        panel.set_title(title)
    for panel in (panels[0], panels[2]):
        figures.log_axis(panel, "y")
    for panel in panels[2:]:
        panel.set_xlabel(r"norm $\rho$ at the end")
    figures.shared_legend(figure)
    return figure


def draw_curves(table: Rows) -> "figures.Figure":
    """Draw test errors against epochs."""
    kinds = [("given", 0.1), ("given", 5.0), ("flipped", 0.1)]
    figure, panels = figures.new_figure(
        7.0, 3.4, panels=(1, 3), share_x=True, share_y=True
    )
    for panel, (labels, start) in zip(panels, kinds, strict=True):
        for name in LOSSES:
            rows = table.where(labels=labels, start=start, loss=name)
            style = figures.kind_style(KINDS[name])
            figures.row_band(panel, rows, "epoch", style=style, label=LOSSES[name])
        figures.log_axis(panel, "x")
        panel.set_xlabel("epochs")
        title = "labels as given" if labels == "given" else "labels flipped"
        panel.set_title(f"{title},\nstart {start:g}")
    panels[0].set_ylim(bottom=0)  # that of all, once all is drawn
    panels[0].set_ylabel("error on new samples")
    figures.shared_legend(figure)
    return figure

"""Draw both sides of the bound against the decay, which sets the norm."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row, group_means

SHOWN = ("bound", "fixed_bound", "ramp", "held_error")


def table(both: PredictedAndMeasured) -> Rows:
    """Return both sides of the bound for each weight decay."""
    return Rows.joined(
        group_means(both.measured.where(quantity=name), ("decay",)) for name in SHOWN
    )


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return margins and norms by duality beside those found by search."""
    rows: list[Row] = []
    for name in ("widest_margin", "shortest_norm", "interpolating_norm"):
        for row in both.predicted.where(quantity=name)[:2]:
            number = both.measured.only(quantity=name, trial=row["trial"])
            rows.append(
                compared_row(
                    f"{name.replace('_', ' ')}, trial {row['trial']}",
                    row["value"],
                    number,
                )
            )
    return rows


KINDS = {
    "bound": "bound",
    "fixed_bound": "tighter_bound",
    "ramp": "training_samples",
    "held_error": "held_out",
}
LABELS = {
    "bound": "bound, union over norms",
    "fixed_bound": "bound, norm known beforehand",
    "ramp": "ramp loss, training",
    "held_error": "error, held out",
}


def draw(table: Rows) -> "figures.Figure":
    """Draw the terms of the inequality."""
    figure, (panel,) = figures.new_figure(6.0, 3.8)
    for name in LABELS:
        rows = table.where(quantity=name)
        figures.row_band(
            panel,
            rows,
            "decay",
            error="spread",
            style=figures.kind_style(KINDS[name]),
            label=LABELS[name],
            kind="bars",
        )
    figures.reference_line(panel, 1.0, label="says nothing above")
    figures.log_axis(panel, "x")
    figures.count_axis(panel, "y")
    panel.set(xlabel=r"weight decay $\lambda$", ylabel="error and its bounds")
    figures.legend(panel)
    return figure

"""Draw both sides of the bound against the decay, which sets the norm."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows, beside, group_means, measured

SHOWN = ("bound", "fixed_bound", "ramp", "held_error")


def table(both: PredictedAndMeasured) -> Rows:
    """Return both sides of the bound for each weight decay."""
    return Rows.joined(
        group_means(both.measured.where(quantity=name), ("decay",)) for name in SHOWN
    )


compare = beside(
    ("widest margin, trial {trial}", measured("widest_margin")),
    ("shortest norm, trial {trial}", measured("shortest_norm")),
    ("interpolating norm, trial {trial}", measured("interpolating_norm")),
)


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

"""Draw the gap of the constraint in each layer, summed and sample by sample."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows, beside, group_means, measured


def table(both: PredictedAndMeasured) -> Rows:
    """Return both gaps at rest by layer, and the floor under the first layer's."""
    decay = min(both.measured.where(quantity="sum_gap").levels("decay"))
    rest = both.measured.where(stage="end", decay=decay)
    shown = Rows.joined(
        group_means(rest.where(quantity=name), ("kind", "layer"))
        for name in ("sum_gap", "sample_gap")
    )
    return shown + both.predicted.where(quantity="first_layer_floor")


compare = beside(
    ("gap of the first layer: {network}", measured("constraint_gap", layer=1, trial=0))
)


LABELS = {
    "linear": "linear",
    "relu": "ReLU",
    "single_samples": "ReLU, by single samples",
}
KINDS = {"linear": "linear", "relu": "relu", "single_samples": "relu_single_samples"}


def draw(table: Rows) -> "figures.Figure":
    """Draw both gaps against the layer."""
    figure, panels = figures.new_figure(7.0, 3.8, panels=(1, 2))
    for panel, quantity in zip(panels, ("sum_gap", "sample_gap"), strict=True):
        for name in LABELS:
            rows = table.where(quantity=quantity, kind=name)
            figures.row_band(
                panel,
                rows,
                "layer",
                error="spread",
                style=figures.kind_style(KINDS[name]),
                label=LABELS[name],
                kind="bars",
            )
        figures.log_axis(panel, "y")
        panel.set_xticks(table.where(quantity=quantity).levels("layer"))
        panel.set_xlabel("layer")
    (floor,) = table.where(quantity="first_layer_floor").values()
    figures.reference_line(panels[1], floor, label="least in layer 1")
    panels[0].set_ylabel("gap of the sum over samples (Eq 38)")
    panels[1].set_ylabel("gap sample by sample (Eq 40)")
    figures.shared_legend(figure)
    return figure

"""What the constraint leaves open in each layer, summed and sample by sample."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "linear": "linear",
    "relu": "ReLU",
    "single_samples": "ReLU, by single samples",
}
KINDS = {"linear": "linear", "relu": "relu", "single_samples": "relu_single_samples"}


def draw(table: Rows) -> "Figure":
    """Draw both gaps against the layer."""
    figure, panels = figures.new_figure(7.0, 3.8, panels=(1, 2))
    for panel, quantity in zip(panels, ("sum_gap", "sample_gap"), strict=True):
        for name in LABELS:
            rows = table.where(quantity=quantity, kind=name)
            figures.band(
                panel,
                rows.column("layer"),
                rows.values(),
                rows.values("spread"),
                style=figures.kind_style(KINDS[name]),
                label=LABELS[name],
                kind="bars",
            )
        figures.log_axis(panel, "y")
        panel.set_xticks(table.where(quantity=quantity).levels("layer"))
        panel.set_xlabel("layer")
    (floor,) = table.where(quantity="first_layer_floor").values()
    figures.rule(panels[1], floor, label="least in layer 1")
    panels[0].set_ylabel("gap of the sum over samples (Eq 38)")
    panels[1].set_ylabel("gap sample by sample (Eq 40)")
    figures.shared_legend(figure)
    return figure

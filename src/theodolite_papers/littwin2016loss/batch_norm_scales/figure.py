"""Figure 1(d), and the sizes of the layers before training."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, group_means

from .config import PRESETS


def table(both: PredictedAndMeasured) -> Rows:
    """Return mean magnitudes of the scales by kind, layer and stage."""
    means = group_means(
        both.measured.where(quantity="scale"), ("norm", "stage", "step", "layer")
    )
    return means


def sizes(both: PredictedAndMeasured) -> Rows:
    """Return mean squares and deviations at the start, and those of the limit."""
    means = [
        row
        for quantity in ("square", "deviation")
        for row in group_means(both.measured.where(quantity=quantity), ("layer",))
    ]
    theory = [
        {**row, "quantity": f"{row['quantity']}_limit"}
        for row in both.predicted
        if row["quantity"] in ("square", "deviation")
    ]
    return Rows([*means, *theory])


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return mean squares of the wide limit beside those of wide networks."""
    rows: list[Row] = []
    for row in both.predicted.where(quantity="square"):
        means = group_means(
            both.measured.where(quantity="square", layer=row["layer"]), ("layer",)
        )
        for mean in means:
            rows.append(
                {
                    "label": f"mean square of a unit, layer {row['layer']}",
                    "predicted": row["value"],
                    "measured": mean["value"],
                    "error": mean["error"] if mean["n"] > 1 else row["error"],
                }
            )
    return rows


TITLES = {"scalar": "one scale per layer (eq. 20)", "batch": "ordinary batch norm"}


def draw(table: Rows) -> "figures.Figure":
    """Draw the scales against the layer, one line per stage of training."""
    figure, panels = figures.new_figure(7.0, 4.2, panels=(1, 2))
    steps = sorted({*table.levels("step"), *PRESETS["paper"].reading_steps})
    for panel, (norm, title) in zip(panels, TITLES.items(), strict=True):
        for step in table.levels("step"):
            rows = table.where(norm=norm, step=step)
            style = figures.ordered_style(step, steps)
            figures.row_band(panel, rows, "layer", style=style, label=f"step {step}")
        panel.set(title=title, xlabel="layer $l$", ylabel=r"$|\lambda_l|$")
    figures.shared_legend(figure, columns=5)
    return figure


def draw_sizes(table: Rows) -> "figures.Figure":
    """Draw mean squares at the start against the layer, and both recursions."""
    figure, (panel,) = figures.new_figure(5.4, 3.6)
    style = figures.kind_style("measured")
    rows, limit = table.where(quantity="square"), table.where(quantity="square_limit")
    figures.row_band(
        panel, rows, "layer", error="spread", style=style, label="networks", line=False
    )
    figures.row_curve(panel, limit, "layer", style=style, label="wide limit")
    figures.curve(
        panel,
        limit.column("layer"),
        limit.column("layer"),
        style=figures.kind_style("beside"),
        label="as printed, $+1$ a layer",
    )
    figures.log_axis(panel, "y")
    panel.set(xlabel="layer $l$", ylabel="$E[N_l(x)_j^2]$ at the start")
    figures.legend(panel)
    return figure

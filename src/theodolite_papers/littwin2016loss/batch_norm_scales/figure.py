"""Figure 1(d), and the sizes of the layers before training."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows, beside, group_means, measured


def table(both: PredictedAndMeasured) -> Rows:
    """Return mean magnitudes of the scales by kind, layer and stage."""
    return group_means(
        both.measured.where(quantity="scale", horizon="short"),
        ("norm", "readout", "rate", "step", "layer"),
    )


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


compare = beside(("mean square of a unit, layer {layer}", measured("square")))


TITLES = {"scalar": "eq. 20", "batch": "batch norm"}


def draw(table: Rows) -> "figures.Figure":
    """Draw the scales against the layer, one line per stage; columns are trainings."""
    trainings = sorted({(row["readout"], row["rate"]) for row in table}, reverse=True)
    shape = len(TITLES), max(len(trainings), 1)
    figure, panels = figures.new_figure(7.0, 4.8, panels=shape)
    steps = table.levels("step")
    for row, (norm, title) in enumerate(TITLES.items()):
        for column, (readout, rate) in enumerate(trainings):
            panel = panels[row * shape[1] + column]
            here = table.where(norm=norm, readout=readout, rate=rate)
            for step in steps:
                style = figures.ordered_style(step, steps)
                lines = here.where(step=step)
                figures.row_band(
                    panel, lines, "layer", style=style, label=f"step {step}"
                )
            if not row:
                panel.set_title(f"readout × {readout:g},\nrate {rate:g}")
            else:
                panel.set_xlabel("layer $l$")
            if not column:
                panel.set_ylabel(f"$|\\lambda_l|$, {title}")
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

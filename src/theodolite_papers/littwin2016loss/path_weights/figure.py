"""Draw figure 1(a–c) from rows of weights."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows


def table(both: PredictedAndMeasured) -> Rows:
    """Return the weights by length, from exact integers and by closed form."""
    exact = both.measured.where(quantity="weight")
    closed = both.predicted.where(quantity="weight")
    return Rows(
        [
            *({**row, "road": "exact"} for row in exact),
            *({**row, "road": "closed form"} for row in closed),
        ]
    )


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return peaks of figure 1 and their weights: closed form beside exact integers."""
    rows: list[Row] = []
    weights = table(both)
    for beta in weights.levels("beta"):
        exact, closed = (
            max(weights.where(road=road, beta=beta), key=lambda row: row["value"])
            for road in ("exact", "closed form")
        )
        for name, column in (("peak", "length"), ("weight at the peak", "value")):
            rows.append(
                {
                    "label": f"{name}, depth {exact['depth']}, beta {beta:g}",
                    "predicted": closed[column],
                    "measured": exact[column],
                    "error": 0.0 if column == "length" else exact["error"],
                }
            )
    return rows


def draw(table: Rows) -> "figures.Figure":
    """Draw one bar per length for each scale, and the closed form over it."""
    betas = table.levels("beta")
    figure, panels = figures.new_figure(
        7.0, 2.6, panels=(1, len(betas)), share_x=True, share_y=True
    )
    names = [f"{beta:g}" for beta in betas]
    style = figures.kind_style("residual")
    for letter, beta, name, panel in zip("abc", betas, names, panels, strict=True):
        bars = table.where(road="exact", beta=beta)
        line = table.where(road="closed form", beta=beta)
        panel.fill_between(
            bars.column("length"),
            bars.values(),
            step="mid",
            color=style.colour,
            alpha=0.45,
            linewidth=0,
            label="exact",
        )
        style = figures.kind_style("measured")
        figures.row_curve(panel, line, "length", style=style, label="closed form")
        panel.set(title=f"({letter})  $\\beta = {name}$", xlabel="path length $r$")
    panels[0].set_ylabel(r"weight $\epsilon_r$")
    figures.shared_legend(figure)
    return figure

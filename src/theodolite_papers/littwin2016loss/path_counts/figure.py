"""Draw the number of paths of each length."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows


def table(both: PredictedAndMeasured) -> Rows:
    """Return paths by length of the deepest residual network, by formula and listed."""
    deepest = max(both.measured.where(network="residual").levels("depth"))
    chosen = {"quantity": "mass", "network": "residual", "depth": deepest}
    first = min(both.measured.where(**chosen).levels("trial"))
    listed = [
        {**row, "road": "listed"} for row in both.measured.where(**chosen, trial=first)
    ]
    return Rows(
        [*listed, *({**r, "road": "formula"} for r in both.predicted.where(**chosen))]
    )


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return the number of paths of each length: the formula beside the listing."""
    rows = table(both)
    listed = rows.where(road="listed")
    return [
        {
            "label": f"paths of length {row['length']}, depth {row['depth']}",
            "predicted": row["value"],
            "measured": listed.value(length=row["length"]),
            "error": 0.0,
        }
        for row in rows.where(road="formula")
    ]


def draw(table: Rows) -> "figures.Figure":
    """Draw paths by length: listed ones as points, the formula dashed."""
    figure, (panel,) = figures.new_figure(6.6, 3.2)
    style = figures.kind_style("measured")
    listed, formula = table.where(road="listed"), table.where(road="formula")
    figures.row_band(
        panel,
        listed,
        "length",
        error=None,
        style=style,
        label="listed one by one",
        line=False,
    )
    figures.row_curve(
        panel,
        formula,
        "length",
        style=style,
        label=r"$\psi_r = d\,\binom{p-1}{r-1}\,n^r$",
    )
    figures.log_axis(panel, "y")
    panel.set_xticks(listed.levels("length"))
    panel.set(xlabel="path length $r$", ylabel="paths")
    figures.legend(panel)
    return figure

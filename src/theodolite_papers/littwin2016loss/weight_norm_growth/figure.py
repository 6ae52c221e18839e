"""Draw figure 1(e) from saved rows."""

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    beside,
    group_means,
    measured,
)

from ..shared.layerwise_config import RATES, READOUTS
from .config import RUN


def table(both: PredictedAndMeasured) -> Rows:
    """Return the norm over its start by step, and the two parts of its change."""
    rows = both.measured.where(lambda row: row["quantity"] in SHOWN)
    rows = rows.where(horizon="short")
    start = {
        tuple(row[k] for k in RUN): row["value"]
        for row in rows.where(quantity="norm", step=0)
    }
    relative: list[Row] = []
    for row in rows:
        first = start[tuple(row[k] for k in RUN)]
        power = 1 if row["quantity"] == "norm" else 2
        relative.append({**row, "value": row["value"] / first**power})
    return Rows.joined(
        group_means(
            Rows(relative).where(quantity=quantity),
            ("init_scale", "readout", "rate", "step"),
        )
        for quantity in SHOWN
    )


SHOWN = ("norm", "radial", "tangential")


compare = beside(
    *(
        (f"{name} at the start, scale {{init_scale:g}}", measured(name, step=0))
        for name in ("norm", "size")
    )
)


KINDS = {"radial": "measured", "tangential": "beside"}
PARTS = {
    "radial": r"along the weights, $-2\mu\,w^T g$",
    "tangential": r"second order, $\mu^2\|g\|^2$",
}


def draw(table: Rows) -> "figures.Figure":
    """Draw the norm over its start, and the two parts of the change of its square."""
    figure, (norms, parts) = figures.new_figure(7.0, 3.8, panels=(1, 2))
    scales = table.levels("init_scale")
    first = table.where(readout=READOUTS[0], rate=RATES[0])
    for scale in scales:
        rows = first.where(quantity="norm", init_scale=scale)
        style = figures.ordered_style(scale, scales)
        figures.row_band(
            norms, rows, "step", error="spread", style=style, label=f"start × {scale:g}"
        )
    figures.reference_line(norms, 1.0)
    for quantity, label in PARTS.items():
        rows = first.where(quantity=quantity, init_scale=scales[-1])
        style = figures.kind_style(KINDS[quantity])
        figures.row_band(parts, rows, "step", error="spread", style=style, label=label)
    figures.reference_line(parts, 0.0)
    for panel in (norms, parts):
        figures.count_axis(panel)
        panel.set_xlabel("step")
    norms.set_ylabel(r"$\|w\|$ over its start")
    parts.set_ylabel(r"change of $\|w\|^2$ over its start")
    figures.shared_legend(figure)
    return figure

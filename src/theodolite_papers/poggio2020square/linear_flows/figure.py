"""Draw the final norms without decay, by start of the flow."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, beside, measured

from .config import STARTS


def table(both: PredictedAndMeasured) -> Rows:
    """Return norms that flow and descent reach over the least one, by start."""
    rows: list[Row] = []
    for road, side in (("flow", both.predicted), ("descent", both.measured)):
        for row in side.where(quantity="end_norm"):
            least = both.predicted.value(quantity="least_norm", trial=row["trial"])
            value, error = row["value"] / least, row["error"] / least
            rows.append({**row, "road": road, "value": value, "error": error})
    return Rows(rows)


def _first(row: Row) -> bool:
    return not row.get("trial", 0)


compare = beside(
    ("end norm, trial {trial}, start {start}", measured("end_norm", _first)),
    ("residual, decay {decay}, sample {sample}", measured("residual", _first)),
    ("margin, sample {sample}", measured("margin", _first)),
)


def draw(table: Rows) -> "figures.Figure":
    """Draw the norm that is reached over the least one, dataset by dataset."""
    figure, (panel,) = figures.new_figure(6.0, 3.4)
    for norm in sorted(STARTS):
        style = figures.ordered_style(norm, sorted(STARTS))
        flow, descent = (
            table.where(road=road, start=STARTS.index(norm))
            for road in ("flow", "descent")
        )
        figures.row_band(
            panel,
            flow,
            "trial",
            error=None,
            style=style,
            bound=[True] * len(flow),
            means="hollow: flow",
            line=False,
            marker_size=9.0,
        )
        figures.row_band(
            panel,
            descent,
            "trial",
            style=style,
            label=rf"$\rho_0 = {norm:g}$, descent",
            line=False,
        )
    figures.reference_line(panel, 1.0)
    panel.set(xlabel="dataset", ylabel=r"$|\rho|$ over the least norm")
    figures.legend(panel)
    return figure

"""Draw norms against margins and errors, the effect of starts, and label noise."""

from typing import Any

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    compared_row,
    group_means,
    measured,
    slope,
)

RUN = ("decay", "start", "noise")


def norms(both: PredictedAndMeasured) -> Rows:
    """Return margins and errors beside norms, run by run, and spreads of margins."""
    rows = both.measured.where(noise=0.0)
    spread = group_means(
        rows.where(quantity="margin_spread"), ("stage", "decay", "start", "noise")
    )
    return Rows(_beside(rows)) + _floored(spread)


def _beside(rows: Rows) -> list[Row]:
    """Return means over trials of norms, each with a margin and an error."""
    points: list[Row] = []
    ends = rows.where(stage="end")
    for row in group_means(
        ends.where(quantity="norm", reading="product"), RUN, log=True
    ):
        labels = {key: row[key] for key in RUN}
        for name, reading in (("mean_margin", "product"), ("test_error", None)):
            kept = ends.where(quantity=name, reading=reading, **labels)
            (other,) = group_means(kept, RUN)
            points.append({**other, "norm": 10 ** row["value"], "beside": name})
        at = {"norm": 10 ** row["value"], "value": 10 ** -row["value"], "error": 0.0}
        points.append({"quantity": "inverse", **at})
    return sorted(points, key=lambda row: row["norm"])


def starts(both: PredictedAndMeasured) -> Rows:
    """Return norms at the end by decay and start, and thresholds by length."""
    ends = both.measured.where(
        quantity="norm", reading="product", stage="end", noise=0.0
    )
    rows = both.measured.where(quantity="threshold", reading="product")
    # Where some trial's lies on the edge of what was tried, the mean is not known.
    edge = {(row["level"], row["epoch"]) for row in rows if row["edge"]}
    thresholds = group_means(rows, ("level", "epoch")).where(
        lambda row: (row["level"], row["epoch"]) not in edge
    )
    return _floored(group_means(ends, RUN, log=True)) + thresholds + _law(thresholds)


def _law(thresholds: Rows) -> list[Row]:
    """Return the inverse of the length through the first threshold of a half."""
    half = thresholds.where(level=0.5)
    return [
        {
            "quantity": "law",
            "epoch": row["epoch"],
            "value": half[0]["value"] * half[0]["epoch"] / row["epoch"],
            "error": 0.0,
        }
        for row in half
    ]


def noise(both: PredictedAndMeasured) -> Rows:
    """Return norms of the last layer and errors by label noise and start."""
    quiet = both.measured.where(decay=0.0, stage="end")
    return group_means(
        quiet.where(quantity="norm", reading="last"), RUN, log=True
    ) + group_means(quiet.where(quantity="test_error"), RUN)


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return predicted thresholds and margins beside the measured ones."""
    read = slope(measured("threshold", level=0.5, reading="product"), "epoch")(both)
    rows: list[Row] = [
        {
            "label": "exponent of the decay that halves dependence, in the epochs",
            "predicted": both.predicted.value(quantity="threshold_exponent"),
            "measured": read.value,
            "error": read.error,
        }
    ]
    ends = both.measured.where(quantity="norm_times_margin")
    for row in group_means(ends, ("decay",)):
        rows.append(
            compared_row(
                f"norm times mean margin, decay {row['decay']:g}",
                both.predicted.value(quantity="norm_times_margin"),
                row,
            )
        )
    return rows


def _floored(rows: Rows) -> Rows:
    """Move zero decay to a third of the least decay, for a logarithmic axis."""
    least = min(d for d in rows.levels("decay") if d > 0)
    return Rows({**row, "shown": row["decay"] or least / 3} for row in rows)


def draw_norms(table: Rows) -> "figures.Figure":
    """Draw margins, errors and spreads of margins."""
    figure, panels = figures.new_figure(7.0, 6.0, panels=(2, 2))
    panels.pop().remove()
    margins, errors, spreads = panels
    starts = table.levels("start")
    for panel, name in ((margins, "mean_margin"), (errors, "test_error")):
        for start in starts:
            rows = table.where(beside=name, start=start)
            style = figures.ordered_style(start, starts)
            _band(panel, rows, "norm", style, f"start {start:g}", line=False)
        figures.log_axis(panel, "x")
        panel.set_xlabel(r"norm $\rho$ at the end")
    law = table.where(quantity="inverse")
    style = figures.kind_style("measured")
    figures.row_curve(margins, law, "norm", style=style, label=r"$1/\rho$")
    figures.log_axis(margins, "y")
    margins.set_ylabel("mean margin $y_n f_n$")
    errors.set_ylabel("error on new samples")
    for start in starts:
        rows = table.where(quantity="margin_spread", stage="end", start=start)
        style = figures.ordered_style(start, starts)
        _band(spreads, rows, "shown", style, f"start {start:g}")
    _decay_axis(spreads)
    spreads.set_ylabel("spread of margins at the end")
    spreads.set_ylim(bottom=0)
    figures.shared_legend(figure)
    return figure


def draw_starts(table: Rows) -> "figures.Figure":
    """Draw final norms by decay, and threshold decays by training length."""
    figure, (ends, lengths) = figures.new_figure(7.0, 3.8, panels=(1, 2))
    starts = table.levels("start")
    for start in starts:
        rows = table.where(quantity="norm", start=start)
        style = figures.ordered_style(start, starts)
        _band(ends, rows, "shown", style, f"start {start:g}")
    _decay_axis(ends)
    figures.power_axis(ends, "y")
    ends.set_ylabel(r"norm $\rho$ at the end")
    figures.legend(ends)
    levels = table.levels("level")
    for level in levels:
        rows = table.where(quantity="threshold", level=level)
        style = figures.ordered_style(level, levels)
        _band(lengths, rows, "epoch", style, f"dependence at {level:.0%}")
    if len(law := table.where(quantity="law")):
        style = figures.kind_style("measured")
        figures.row_curve(lengths, law, "epoch", style=style, label="inverse")
        figures.log_axis(lengths, "x", ticks=law.column("epoch"))
    figures.log_axis(lengths, "y", ticks=[d for d in table.levels("decay") if d])
    lengths.set(xlabel="epochs of training", ylabel=r"weight decay $\lambda$")
    figures.legend(lengths)
    return figure


def draw_noise(table: Rows) -> "figures.Figure":
    """Draw norms of the last layer and errors against label noise."""
    figure, panels = figures.new_figure(7.0, 3.8, panels=(1, 2))
    starts = table.levels("start")
    titles = {"norm": "norm of the last layer", "test_error": "error on new samples"}
    for panel, (quantity, label) in zip(panels, titles.items(), strict=True):
        for start in starts:
            rows = table.where(quantity=quantity, start=start)
            if len(rows) < 2:  # no noise was tried from there
                continue
            style = figures.ordered_style(start, starts)
            _band(panel, rows, "noise", style, f"start {start:g}")
        panel.set(xlabel=r"label noise $\delta$", ylabel=label)
    figures.power_axis(panels[0], "y")
    panels[1].set_ylim(bottom=0)
    figures.shared_legend(figure)
    return figure


def _band(
    panel: "figures.Axes",
    rows: Rows,
    over: str,
    style: "figures.SeriesStyle",
    label: str,
    *,
    line: bool = True,
) -> None:
    settings: dict[str, Any] = {"kind": "bars", "line": line, "label": label}
    figures.row_band(panel, rows, over, error="spread", style=style, **settings)


def _decay_axis(panel: "figures.Axes") -> None:
    figures.log_axis(panel, "x")
    panel.set_xlabel(r"weight decay $\lambda$ (leftmost: none)")

"""Norms beside margins and errors, starts forgotten, and label noise, from rows."""

from typing import TYPE_CHECKING, Any

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_norms(table: Rows) -> "Figure":
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
    figures.curve(
        margins, law.column("norm"), law.values(), style=style, label=r"$1/\rho$"
    )
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


def draw_starts(table: Rows) -> "Figure":
    """Draw norms at the end by decay, and decays that forget by length."""
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
        figures.curve(
            lengths, law.column("epoch"), law.values(), style=style, label="inverse"
        )
        figures.log_axis(lengths, "x", ticks=law.column("epoch"))
    figures.log_axis(lengths, "y", ticks=[d for d in table.levels("decay") if d])
    lengths.set_xlabel("epochs of training")
    lengths.set_ylabel(r"weight decay $\lambda$")
    figures.legend(lengths)
    return figure


def draw_noise(table: Rows) -> "Figure":
    """Draw norms of the last layer and errors against label noise."""
    figure, panels = figures.new_figure(7.0, 3.8, panels=(1, 2))
    starts = table.levels("start")
    told = {
        "norm": "norm of the last layer",
        "test_error": "error on new samples",
    }
    for panel, (quantity, label) in zip(panels, told.items(), strict=True):
        for start in starts:
            rows = table.where(quantity=quantity, start=start)
            if len(rows) < 2:  # no noise was tried from there
                continue
            style = figures.ordered_style(start, starts)
            _band(panel, rows, "noise", style, f"start {start:g}")
        panel.set_xlabel(r"label noise $\delta$")
        panel.set_ylabel(label)
    figures.power_axis(panels[0], "y")
    panels[1].set_ylim(bottom=0)
    figures.shared_legend(figure)
    return figure


def _band(
    panel: "Axes",
    rows: Rows,
    over: str,
    style: "figures.SeriesStyle",
    label: str,
    *,
    line: bool = True,
) -> None:
    settings: dict[str, Any] = {"kind": "bars", "line": line, "label": label}
    figures.band(
        panel,
        rows.column(over),
        rows.values(),
        rows.values("spread"),
        style=style,
        **settings,
    )


def _decay_axis(panel: "Axes") -> None:
    figures.log_axis(panel, "x")
    panel.set_xlabel(r"weight decay $\lambda$ (leftmost: none)")

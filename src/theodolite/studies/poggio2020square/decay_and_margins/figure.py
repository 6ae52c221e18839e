"""Norms beside margins and errors, starts forgotten, and label noise, from rows."""

from typing import TYPE_CHECKING, Any

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_norms(table: Rows) -> "Figure":
    """Draw margins, errors and spreads of margins."""
    figure, (margins, errors, spreads) = figures.new_figure(10.2, 3.4, panels=(1, 3))
    names = _names(table, "start")
    for panel, name in ((margins, "mean_margin"), (errors, "test_error")):
        for start in names:
            rows = table.where(beside=name, start=float(start))
            _band(panel, rows, "norm", start, names, f"start {start}", line=False)
        figures.log_axis(panel, "x")
        panel.set_xlabel(r"norm $\rho$ at the end")
    law = table.where(quantity="inverse")
    style = figures.series_style("law", ["", "", "", "", "", "", "law"])
    figures.curve(
        margins, law.column("norm"), law.values(), style=style, label=r"$1/\rho$"
    )
    figures.legend(margins)
    figures.log_axis(margins, "y")
    margins.set_ylabel("mean margin $y_n f_n$")
    errors.set_ylabel("error on new samples")
    for start in names:
        rows = table.where(quantity="margin_spread", stage="end", start=float(start))
        _band(spreads, rows, "shown", start, names, f"start {start}")
    _decay_axis(spreads)
    spreads.set_ylabel("spread of margins at the end")
    spreads.set_ylim(bottom=0)
    figures.legend(errors)
    return figure


def draw_starts(table: Rows) -> "Figure":
    """Draw norms at the end by decay, and decays that forget by length."""
    figure, (ends, lengths) = figures.new_figure(8.6, 3.6, panels=(1, 2))
    names = _names(table, "start")
    for start in names:
        rows = table.where(quantity="norm", start=float(start))
        _band(ends, rows, "shown", start, names, f"start {start}")
    _decay_axis(ends)
    ends.set_ylabel(r"$\log_{10}\rho$ at the end")
    figures.legend(ends)
    levels = _names(table, "level")
    for level in levels:
        rows = table.where(quantity="threshold", level=float(level))
        label = f"dependence at {float(level):.0%}"
        _band(lengths, rows, "epoch", level, levels, label)
    if len(law := table.where(quantity="law")):
        style = figures.series_style(levels[-1], levels)
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
    figure, panels = figures.new_figure(8.6, 3.4, panels=(1, 2))
    names = _names(table, "start")
    told = {
        "norm": r"$\log_{10}$ norm of the last layer",
        "test_error": "error on new samples",
    }
    for panel, (quantity, label) in zip(panels, told.items(), strict=True):
        for start in names:
            rows = table.where(quantity=quantity, start=float(start))
            if len(rows) < 2:  # no noise was tried from there
                continue
            _band(panel, rows, "noise", start, names, f"start {start}")
        panel.set_xlabel(r"label noise $\delta$")
        panel.set_ylabel(label)
    panels[1].set_ylim(bottom=0)
    figures.legend(panels[0])
    return figure


def _band(
    panel: "Axes",
    rows: Rows,
    over: str,
    name: str,
    names: list[str],
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
        style=figures.series_style(name, names),
        **settings,
    )


def _names(table: Rows, label: str) -> list[str]:
    return [f"{level:g}" for level in table.levels(label)]


def _decay_axis(panel: "Axes") -> None:
    figures.log_axis(panel, "x")
    panel.set_xlabel(r"weight decay $\lambda$ (leftmost: none)")

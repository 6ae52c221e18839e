"""ReLU networks against the smooth formula, from rows of networks."""

import math

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row

# An axis with fewer ticks does not show its scale.
_FEWEST = 3


def relu(both: PredictedAndMeasured) -> Rows:
    """Return measured beside printed numbers, and the ends and ticks of the axes."""
    rows: list[Row] = []
    for quantity in ("largest", "condition"):
        printed = both.predicted.where(quantity=quantity)
        table: list[Row] = [
            {**row, "printed": printed.value(trial=row["trial"])}
            for row in both.measured.where(quantity=quantity)
        ]
        ends = [row[key] for row in table for key in ("value", "printed")]
        low, high = min(ends), max(ends)
        axis = [("end", low), ("end", high)]
        axis += [("tick", tick) for tick in _ticks(low, high)]
        rows += table
        rows += [{"quantity": quantity, "axis": kind, "value": v} for kind, v in axis]
    return Rows(rows)


def _ticks(low: float, high: float) -> list[float]:
    """Return a few round numbers within the data, enough to read the axis."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = [s * 10.0**k for k in decades for s in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= _FEWEST:
            break
    return ticks or [low, high]


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return orders of contact beside n, and Eq 9 beside ReLU networks."""
    rows: list[Row] = []
    orders = both.measured.where(quantity="order")
    for n in orders.levels("n"):
        mine = orders.where(n=n)
        mean, error = float(mine.values().mean()), float(mine.values("error").max())
        measured = {"value": mean, "error": error}
        rows.append(compared_row(f"order of contact, n = {n}", float(n), measured))
    conditions = both.measured.where(quantity="condition")
    deepest = conditions.where(units=max(conditions.levels("units")))
    for trial in deepest.levels("trial")[:3]:
        label = f"cond(H), ReLU at mid, small weights, dataset {trial}"
        wanted = both.predicted.value(quantity="condition", trial=trial)
        rows.append(compared_row(label, wanted, deepest.only(trial=trial)))
    return rows


PANELS = (("largest", "largest eigenvalue"), ("condition", "condition number"))


def draw(table: Rows) -> "figures.Figure":
    """Draw measured against printed numbers, one panel per quantity."""
    figure, panels = figures.new_figure(7.0, 3.4, panels=(1, 2))
    units = table.levels("units")
    for panel, (quantity, title) in zip(panels, PANELS, strict=True):
        rows = table.where(quantity=quantity)
        for u in units:
            style, label = figures.ordered_style(u, units), f"{u} unit{'s' * (u > 1)}"
            chosen = rows.where(units=u)
            figures.row_band(
                panel,
                chosen,
                "printed",
                error=None,
                style=style,
                label=label,
                line=False,
            )
        ends = rows.where(axis="end").values()
        panel.plot(
            ends, ends, color=figures.MUTED, linewidth=0.9, zorder=1, label="equal"
        )
        ticks = rows.where(axis="tick").column("value")
        figures.log_axis(panel, "x", ticks=ticks)
        figures.log_axis(panel, "y", ticks=ticks)
        panel.set_title(title)
        panel.set_xlabel("Eqs 9 and 26, slope ½")
        panel.set_ylabel("measured at small weights")
    figures.shared_legend(figure)
    return figure

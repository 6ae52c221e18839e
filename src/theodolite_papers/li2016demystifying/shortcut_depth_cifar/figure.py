"""Draw figure 9 from saved rows."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows, beside, group_means, measured

from ..shared.cifar_tables import ERROR


def table(both: PredictedAndMeasured) -> Rows:
    """Return final errors in percent by shortcut depth and depth, side by side."""
    means = group_means(ERROR(both), ("shortcut", "depth"))
    names = means.levels("shortcut")
    middle = (len(names) - 1) / 2
    return Rows(
        {
            **row,
            # Side by side, so that bars of one depth do not hide one another.
            "place": row["depth"] * 1.02 ** (names.index(row["shortcut"]) - middle),
            "value": 100 * row["value"],
            "spread": 100 * row["spread"],
        }
        for row in means
    )


compare = beside(("parameters, depth {depth}", measured("parameters")))


def draw(table: Rows) -> "figures.Figure":
    """Draw the error against depth, by number of layers that a shortcut skips."""
    figure, (panel,) = figures.new_figure(5.8, 3.6)
    for length in table.levels("shortcut"):
        mine = table.where(shortcut=length)
        look = {"style": figures.shortcut_kind(length), "label": f"{length}-shortcut"}
        figures.row_band(panel, mine, "place", error="spread", kind="bars", **look)
    if len(table):
        figures.log_axis(panel, "x", base=2, ticks=table.levels("depth"))
    panel.set_xlabel("depth (convolutions and classifier)")
    panel.set_ylabel("test error (%)")
    figures.legend(panel, outside=True)
    return figure

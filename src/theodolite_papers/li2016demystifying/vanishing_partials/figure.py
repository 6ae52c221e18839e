"""Which orders of derivative survive at zero, from rows of shares."""

from typing import Any

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row


def shares(both: PredictedAndMeasured) -> Rows:
    """Return allowed and largest measured shares, by shortcut length and order."""
    kept = both.measured.where(quantity="share", setting="general")
    return Rows(
        {
            **row,
            "measured": float(
                kept.where(n=row["n"], order=row["order"]).values().max()
            ),
        }
        for row in both.predicted.where(quantity="allowed")
    )


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return the share of non-zero derivatives beside what lemma 3 allows."""
    return [
        compared_row(
            "non-zero derivatives of order {order}, n = {n} (at most)".format(**row),
            row["value"],
            {"value": row["measured"], "error": 0.0},
        )
        for row in shares(both)
    ]


def draw(table: Rows) -> "figures.Figure":
    """Draw the share of non-zero derivatives by order, one panel per length."""
    lengths = table.levels("n")
    figure, panels = figures.new_figure(
        7.0, 2.8, panels=(1, len(lengths)), share_y=True
    )
    for panel, n in zip(panels, lengths, strict=True):
        rows = table.where(n=n)
        orders = rows.column("order")
        colour = figures.kind_style(figures.shortcut_kind(n)).colour
        panel.bar(orders, rows.values("measured"), width=0.62, color=colour, alpha=0.6)
        panel.bar(
            orders,
            rows.values(),
            width=0.74,
            facecolor="none",
            edgecolor=figures.TEXT_COLOUR,
            linewidth=1.0,
        )
        panel.set_title(f"{n}-shortcut")
        panel.set_xticks(orders)
        panel.set_xlabel("order of the derivative")
        panel.set_ylim(0, 1.05)
        panel.set_yticks([0, 0.5, 1])
    panels[0].set_ylabel("share that is not zero")
    panels[0].bar([1], [0], color=figures.MUTED, alpha=0.6, label="measured")
    outline: dict[str, Any] = {"facecolor": "none", "edgecolor": figures.TEXT_COLOUR}
    panels[0].bar([1], [0], **outline, label="allowed by lemma 3")
    figures.shared_legend(figure)
    return figure

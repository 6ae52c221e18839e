"""Drawings that several figures share: one series per depth, and condition numbers."""

from collections.abc import Iterable, Mapping

from theodolite import figures
from theodolite.core import Rows


def draw_depths(
    panel: "figures.Axes", rows: Rows, over: str, paper_depths: Iterable[int]
) -> None:
    """Draw one series per depth, in the colours of the paper's depths."""
    depths = sorted({*rows.levels("depth"), *paper_depths})
    for depth in rows.levels("depth"):
        style, label = figures.ordered_style(depth, depths), f"depth {depth}"
        mine = rows.where(depth=depth)
        figures.row_band(panel, mine, over, error="spread", style=style, label=label)


def draw_ratios(
    panel: "figures.Axes", table: Rows, series: Mapping[str, tuple[str, str]]
) -> None:
    """Draw condition numbers against depth, with closed forms where they are known.

    The table has ``ratio`` and ``closed_form`` by kind and depth; ``series`` has the
    label and style of each kind.
    """
    for kind, (label, style) in series.items():
        ratios = table.where(quantity="ratio", kind=kind)
        theory = table.where(quantity="closed_form", kind=kind)
        figures.row_band(
            panel,
            ratios,
            "depth",
            error="spread",
            style=style,
            label=label,
            bound=ratios.column("open"),
            means="hollow: a lower bound, by rounding",
            # Points on a predicted curve need no line between them.
            line=not len(theory),
            # 1-shortcuts are equal to these and lie over them.
            marker_size=8.0 if kind == "orthogonal" else 5.0,
        )
        if len(theory):
            means = "closed form at zero"
            figures.row_curve(panel, theory, "depth", style=style, means=means)
    figures.log_axis(panel, "x", base=2, ticks=table.levels("depth"))
    figures.power_axis(panel, "y")
    panel.set_xlabel("depth (weight matrices)")
    panel.set_ylabel(r"$|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
    figures.legend(panel)

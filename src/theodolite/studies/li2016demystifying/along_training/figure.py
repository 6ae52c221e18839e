"""Figures 5 and 6 from rows of points."""

from typing import TYPE_CHECKING, Any

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS = {
    "xavier": "Xavier, no shortcut",
    "orthogonal": "orthogonal, no shortcut",
    "one_shortcut": "1-shortcut",
    "two_shortcut": "2-shortcut",
}
NAMES = list(LABELS)


def draw_eigenvalues(table: Rows) -> "Figure":
    """Draw figure 5: extremes of the spectrum at equal loss."""
    figure, (panel,) = figures.new_figure(6.6, 4.4)
    depth = table.levels("depth")[-1]
    rows = table.where(depth=depth)
    for kind in NAMES:
        _series(panel, rows.where(quantity="largest"), kind)
        _series(panel, rows.where(quantity="small"), kind, hollow=True)
    _excess_axis(panel, "excess loss, as a fraction of that at zero weights")
    figures.power_axis(panel, "y")
    panel.set_ylabel(r"$|\lambda|_{\max}$ (filled), $|\lambda|_{(0.1)}$ (hollow)")
    panel.set_title(f"depth {depth}")
    figures.shared_legend(figure)
    return figure


def draw_ratio(table: Rows) -> "Figure":
    """Draw the condition number at equal loss, a panel a depth."""
    figure, panels = _by_depth(table)
    panels[0].set_ylabel(r"$|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
    for panel in panels:
        figures.power_axis(panel, "y")
    figures.shared_legend(figure)
    return figure


def draw_index(table: Rows) -> "Figure":
    """Draw figure 6, left: the index at equal loss."""
    figure, panels = _by_depth(table)
    for panel in panels:
        figures.rule(panel, 0.5)
    panels[0].set_ylabel("index (fraction of negative eigenvalues)")
    figures.shared_legend(figure)
    return figure


def draw_run(table: Rows) -> "Figure":
    """Draw figure 6, right: gradient, curvature along it and index of one run."""
    labels = {
        "gradient": r"$\|\nabla L\|$",
        "curvature": "curvature\n" + r"along $\nabla L$",
        "index": "index (fraction\nof negative)",
    }
    figure, panels = figures.new_figure(6.2, 5.4, panels=(3, 1), share_x=True)
    style = figures.kind_style("two_shortcut")
    for panel, (name, label) in zip(panels, labels.items(), strict=True):
        found = table.where(quantity=name)
        figures.line(panel, found.column("step"), found.values(), style=style)
        figures.rule(panel, table.value(quantity="peak"), along="y")
        panel.set_ylabel(label)
    figures.rule(panels[1], 0.0)
    panels[0].set_title(f"2-shortcut, depth {table.levels('depth')[0]}, one run")
    panels[2].set_xlabel("step of gradient descent")
    return figure


def _by_depth(table: Rows) -> tuple["Figure", Any]:
    depths = table.levels("depth")[::-1]
    figure, panels = figures.new_figure(7.0, 3.9, panels=(1, len(depths)), share_y=True)
    for panel, depth in zip(panels, depths, strict=True):
        for kind in NAMES:
            _series(panel, table.where(depth=depth), kind)
        _excess_axis(panel, "excess loss, fraction")
        panel.set_title(f"depth {depth}")
    return figure, panels


def _series(panel: "Axes", rows: Rows, kind: str, *, hollow: bool = False) -> None:
    found = rows.where(kind=kind)
    if len(found):
        figures.band(
            panel,
            found.column("fraction"),
            found.values(),
            found.values("spread"),
            style=figures.kind_style(kind),
            label=None if hollow else LABELS[kind],
            bound=[hollow] * len(found),
            means=r"hollow: $|\lambda|_{(0.1)}$",
        )


def _excess_axis(panel: "Axes", label: str) -> None:
    figures.log_axis(panel, "x")
    # Training goes from left to right.
    panel.invert_xaxis()
    panel.set_xlabel(label)

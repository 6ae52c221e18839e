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
    panel.set_ylabel(
        r"$\log_{10}\,|\lambda|_{\max}$ and $\log_{10}\,|\lambda|_{(0.1)}$"
    )
    panel.set_title(f"depth {depth}")
    for face, label in (
        ("0.4", r"$|\lambda|_{\max}$"),
        ("white", r"$|\lambda|_{(0.1)}$"),
    ):
        panel.plot([], [], color="0.4", marker="o", markerfacecolor=face, label=label)
    figures.legend(panel, outside=True)
    return figure


def draw_ratio(table: Rows) -> "Figure":
    """Draw the condition number at equal loss, a panel a depth."""
    figure, panels = _by_depth(table)
    panels[0].set_ylabel(r"$\log_{10}\;|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
    figures.legend(panels[0])
    return figure


def draw_index(table: Rows) -> "Figure":
    """Draw figure 6, left: the index at equal loss."""
    figure, panels = _by_depth(table)
    for panel in panels:
        figures.rule(panel, 0.5)
    panels[0].set_ylabel("index (fraction of negative eigenvalues)")
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low, high + 0.35 * (high - low))  # room for the key
    figures.legend(panels[0])
    return figure


def draw_run(table: Rows) -> "Figure":
    """Draw figure 6, right: gradient, curvature along it and index of one run."""
    figure, panels = figures.new_figure(6.2, 4.8, panels=(2, 1), share_x=True)
    labels = {
        "gradient": r"$\|\nabla L\|$",
        "curvature": r"curvature along $\nabla L$",
        "index": "index",
    }
    for name, label in labels.items():
        panel = panels[1] if name == "index" else panels[0]
        found = table.where(quantity=name)
        style = figures.series_style(name, list(labels))
        figures.band(
            panel, found.column("step"), found.values(), style=style, label=label
        )
    for panel in panels:
        figures.rule(panel, table.value(quantity="peak"), along="y")
    figures.rule(panels[0], 0.0)
    panels[0].set_ylabel("gradient, curvature")
    panels[0].set_title(f"2-shortcut, depth {table.levels('depth')[0]}, one run")
    panels[1].set_ylabel("index (fraction of negative)")
    panels[1].set_xlabel("step of gradient descent")
    figures.legend(panels[0])
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
            style=figures.series_style(kind, NAMES),
            label=None if hollow else LABELS[kind],
            bound=[hollow] * len(found),
        )


def _excess_axis(panel: "Axes", label: str) -> None:
    figures.log_axis(panel, "x")
    # Training goes from left to right.
    panel.invert_xaxis()
    panel.set_xlabel(label)

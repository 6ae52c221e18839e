"""Figures 5 and 6 from saved rows."""

from typing import TYPE_CHECKING

import numpy as np

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.li2016demystifying.along_training_index import peak
from theodolite.studies.li2016demystifying.along_training_levels import levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS = {
    "xavier": "Xavier, no shortcut",
    "orthogonal": "orthogonal, no shortcut",
    "one_shortcut": "1-shortcut",
    "two_shortcut": "2-shortcut",
}
EXCESS = "excess loss, as a fraction of that at zero weights"


def _depths(measured: Rows) -> list[int]:
    return measured.where(task="levels").levels("depth")[::-1]


def _series(
    measured: Rows, quantity: str, kind: str, depth: int, *, log: bool
) -> tuple[list[float], list[float], list[float]]:
    """Return fractions, means and standard deviations over networks."""
    found = levels(measured, quantity, kind, depth)
    mean, spread = [], []
    for rows in found.values():
        values = np.log10(rows.values()) if log else rows.values()
        mean.append(float(values.mean()))
        spread.append(float(values.std(ddof=1)) if len(values) > 1 else 0.0)
    return list(found), mean, spread


def _excess_axis(panel: "Axes") -> None:
    figures.log_axis(panel, "x")
    # Training goes from left to right.
    panel.invert_xaxis()
    panel.set_xlabel(EXCESS)


def draw_eigenvalues(predicted: Rows, measured: Rows) -> "Figure":
    """Draw figure 5: extremes of the spectrum at equal loss."""
    figure, (panel,) = figures.new_figure(6.6, 4.4)
    depth, names = _depths(measured)[0], list(LABELS)
    for kind in names:
        style = figures.series_style(kind, names)
        at, mean, spread = _series(measured, "largest", kind, depth, log=True)
        figures.band(panel, at, mean, spread, style=style, label=LABELS[kind])
        at, mean, spread = _series(measured, "small", kind, depth, log=True)
        low, high = (np.array(mean) + sign * np.array(spread) for sign in (-1, 1))
        panel.fill_between(at, low, high, color=style.colour, alpha=0.18, linewidth=0)
        panel.plot(
            at,
            mean,
            color=style.colour,
            marker=style.marker,
            markerfacecolor="white",
            linestyle="dashed",
            linewidth=1.2,
        )
    _excess_axis(panel)
    panel.set_ylabel(
        r"$\log_{10}\,|\lambda|_{\max}$ and $\log_{10}\,|\lambda|_{(0.1)}$"
    )
    panel.set_title(f"depth {depth}")
    for line, face, label in (
        ("solid", "0.4", r"$|\lambda|_{\max}$"),
        ("dashed", "white", r"$|\lambda|_{(0.1)}$"),
    ):
        panel.plot(
            [], [], color="0.4", marker="o", markerfacecolor=face, linestyle=line,
            label=label,
        )  # fmt: skip
    figures.legend(panel, outside=True)
    return figure


def draw_ratio(predicted: Rows, measured: Rows) -> "Figure":
    """Draw the condition number at equal loss, a panel a depth."""
    depths, names = _depths(measured), list(LABELS)
    figure, panels = figures.new_figure(7.0, 3.9, panels=(1, len(depths)), share_y=True)
    for panel, depth in zip(panels, depths, strict=True):
        for kind in names:
            at, mean, spread = _series(measured, "ratio", kind, depth, log=True)
            if at:
                style = figures.series_style(kind, names)
                figures.band(panel, at, mean, spread, style=style, label=LABELS[kind])
        _excess_axis(panel)
        panel.set_xlabel("excess loss, fraction")
        panel.set_title(f"depth {depth}")
    panels[0].set_ylabel(r"$\log_{10}\;|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
    figures.legend(panels[0])
    return figure


def draw_index(predicted: Rows, measured: Rows) -> "Figure":
    """Draw figure 6, left: the index at equal loss."""
    depths, names = _depths(measured), list(LABELS)
    figure, panels = figures.new_figure(7.0, 3.9, panels=(1, len(depths)), share_y=True)
    for panel, depth in zip(panels, depths, strict=True):
        for kind in names:
            at, mean, spread = _series(measured, "index", kind, depth, log=False)
            if at:
                style = figures.series_style(kind, names)
                figures.band(panel, at, mean, spread, style=style, label=LABELS[kind])
        figures.rule(panel, 0.5)
        _excess_axis(panel)
        panel.set_xlabel("excess loss, fraction")
        panel.set_title(f"depth {depth}")
    panels[0].set_ylabel("index (fraction of negative eigenvalues)")
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low, high + 0.35 * (high - low))  # room for the key
    figures.legend(panels[0])
    return figure


def draw_run(predicted: Rows, measured: Rows) -> "Figure":
    """Draw figure 6, right: gradient, curvature along it and index of one run."""
    figure, panels = figures.new_figure(6.2, 4.8, panels=(2, 1), share_x=True)
    rows = measured.where(task="run")
    names = ["gradient", "curvature", "index"]
    labels = {
        "gradient": r"$\|\nabla L\|$",
        "curvature": r"curvature along $\nabla L$",
        "index": "index",
    }
    for name in names:
        panel = panels[1] if name == "index" else panels[0]
        found = rows.where(quantity=name)
        style = figures.series_style(name, names)
        steps = found.column("step")
        figures.band(panel, steps, found.values(), style=style, label=labels[name])
    for panel in panels:
        figures.rule(panel, peak(rows), along="y")
    figures.rule(panels[0], 0.0)
    panels[0].set_ylabel("gradient, curvature")
    panels[0].set_title(f"2-shortcut, depth {rows.levels('depth')[0]}, one run")
    panels[1].set_ylabel("index (fraction of negative)")
    panels[1].set_xlabel("step of gradient descent")
    figures.legend(panels[0])
    return figure

"""Figure 3 from saved rows."""

from typing import TYPE_CHECKING

import numpy as np

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.li2016demystifying.weight_norms_claims import along, final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {"linear": "without nonlinearities", "relu": "with ReLU at mid"}


def draw(predicted: Rows, measured: Rows) -> "Figure":
    """Draw the mean norm against the step, one panel a network."""
    figure, panels = figures.new_figure(7.0, 3.8, panels=(1, 2), share_y=True)
    names = [str(depth) for depth in measured.levels("depth")]
    for panel, (network, title) in zip(panels, TITLES.items(), strict=True):
        rows = along(measured, network)
        for name in names:
            _depth(panel, rows.where(depth=int(name)), name, names)
        if network == "linear":
            _early(panel, predicted, rows)
        rate = rows.levels("lr")[0]
        figures.log_axis(panel, "x")
        figures.log_axis(panel, "y")
        panel.set_title(f"{title}, rate {rate:g}")
        panel.set_xlabel("step of gradient descent")
    panels[0].set_ylabel(r"mean $\|W\|_F$ over matrices")
    figures.legend(panels[0], title="depth")
    return figure


def _depth(panel: "Axes", rows: Rows, name: str, names: list[str]) -> None:
    # A logarithmic axis has no place for step 0.
    steps = [step for step in rows.levels("step") if step]
    points = [_point(rows.where(step=step)) for step in steps]
    mean, spread = (list(column) for column in zip(*points, strict=True))
    style = figures.series_style(name, names)
    figures.band(panel, steps, mean, spread, style=style, label=name)


def _early(panel: "Axes", predicted: Rows, rows: Rows) -> None:
    """Draw the law near zero, up to where it leaves the measured range."""
    top = float(np.nanmax(rows.values()))
    theory = predicted.where(quantity="early_norm", lr=rows.levels("lr")[0])
    theory = theory.where(lambda row: row["step"] and row["value"] < top)
    panel.plot(
        theory.column("step"),
        theory.values(),
        color="0.25",
        linewidth=1.2,
        linestyle=(0, (4, 2)),
        label="near zero",
        zorder=3,
    )


def _point(rows: Rows) -> tuple[float, float]:
    values = rows.values()
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return float(values.mean()), spread


def draw_scaling(predicted: Rows, measured: Rows) -> "Figure":
    """Draw final norms against the number of units."""
    figure, (panel,) = figures.new_figure(5.2, 3.8)
    names = list(TITLES)
    units = [depth // 2 for depth in measured.levels("depth")]
    for name in names:
        rows = final(measured, name)
        points = [_point(rows.where(depth=2 * unit)) for unit in units]
        mean, spread = (list(column) for column in zip(*points, strict=True))
        style = figures.series_style(name, names)
        figures.band(panel, units, mean, spread, style=style, label=TITLES[name])
        guide = mean[-1] * np.sqrt(units[-1] / np.array(units, dtype=float))
        panel.plot(
            units,
            guide,
            color=style.colour,
            linewidth=1.0,
            linestyle=(0, (1, 2)),
            label=r"$R^{-1/2}$" if name == "linear" else "_nolegend_",
        )
    figures.log_axis(panel, "x", base=2, ticks=units)
    panel.set_yscale("log", base=2)
    figures.log_axis(panel, "y", base=2, ticks=[0.5, 1.0, 2.0, 4.0])
    panel.set_xlabel("residual units $R$ (two matrices each)")
    panel.set_ylabel(r"mean $\|W\|_F$ at the end")
    figures.legend(panel)
    return figure

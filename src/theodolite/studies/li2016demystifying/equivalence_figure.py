"""One training curve for two networks, and where they part, from saved rows."""

from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {
    "orthogonal": "plain, orthogonal",
    "one_shortcut_turned": "1-shortcut, turned labels",
    "one_shortcut": "1-shortcut, same labels",
    "xavier": "plain, Xavier",
}


def draw(predicted: Rows, measured: Rows) -> "Figure":
    """Draw losses along training, deviations of spectra, and condition numbers."""
    figure, panels = figures.new_figure(7.4, 3.4, panels=(1, 3))
    _losses(panels[0], measured.where(quantity="loss"))
    _deviations(panels[1], measured.where(quantity="spectrum_gap"))
    ratios = {
        "plain, Xavier": measured.where(quantity="xavier_ratio"),
        "1-shortcut": predicted.where(quantity="ratio"),
    }
    _ratios(panels[2], ratios)
    return figure


def _losses(panel: Any, rows: Rows) -> None:
    for kind, label in KINDS.items():
        chosen = rows.where(kind=kind)
        style = figures.series_style(kind, list(KINDS))
        steps, values = chosen.column("step"), chosen.values()
        if kind == "one_shortcut_turned":
            figures.band(panel, steps, values, style=style, label=label, line=False)
        else:
            panel.plot(steps, values, label=label, **style.line_settings())
    panel.set_title("linear, in training")
    panel.set_xlabel("step of gradient descent")
    panel.set_ylabel("loss")
    panel.legend(fontsize=7.0, handlelength=1.4)


def _deviations(panel: Any, rows: Rows) -> None:
    settings = list(dict.fromkeys(rows.column("setting")))
    depths = rows.levels("depth")
    for setting in settings:
        chosen = rows.where(setting=setting)
        found = [float(chosen.where(depth=depth).values().max()) for depth in depths]
        style = figures.series_style(setting, settings)
        figures.band(panel, depths, found, style=style, label=setting)
    figures.log_axis(panel, "x", base=2, ticks=depths)
    figures.log_axis(panel, "y")
    panel.set_ylim(1e-17, 1e3)
    panel.set_title("orthogonal, 1-shortcut")
    panel.set_xlabel("depth (weight matrices)")
    panel.set_ylabel("deviation of eigenvalues")
    panel.legend(loc="center", fontsize=7.0, handlelength=1.4)


def _ratios(panel: Any, ratios: dict[str, Rows]) -> None:
    for name, rows in ratios.items():
        depths = rows.levels("depth")
        logs = [np.log10(rows.where(depth=depth).values()) for depth in depths]
        figures.band(
            panel,
            depths,
            [float(values.mean()) for values in logs],
            [float(values.std(ddof=1)) if len(values) > 1 else 0.0 for values in logs],
            style=figures.series_style(name, list(ratios)),
            label=name,
        )
        figures.log_axis(panel, "x", base=2, ticks=depths)
    panel.set_title("Xavier, 1-shortcut")
    panel.set_xlabel("depth (weight matrices)")
    panel.set_ylabel(r"$\log_{10}\;|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
    panel.legend(fontsize=7.0, handlelength=1.4)

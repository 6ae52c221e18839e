"""One training curve for two networks, and where they part."""

from typing import TYPE_CHECKING, Any

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


def draw(table: Rows) -> "Figure":
    """Draw losses along training, and condition numbers without and with ReLU."""
    figure, panels = figures.new_figure(7.4, 3.4, panels=(1, 3))
    _losses(panels[0], table.where(quantity="loss"))
    for panel, setting, title in (
        (panels[1], "linear", "linear, at the start"),
        (panels[2], "relu before", "ReLU, at the start"),
    ):
        _ratios(panel, table.where(quantity="ratio", setting=setting))
        panel.set_title(title)
    panels[1].set_ylabel(r"$\log_{10}\;|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
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


def _ratios(panel: Any, rows: Rows) -> None:
    for kind in ("orthogonal", "one_shortcut", "xavier"):
        chosen = rows.where(kind=kind)
        figures.band(
            panel,
            chosen.column("depth"),
            chosen.values(),
            chosen.values("spread"),
            style=figures.series_style(kind, list(KINDS)),
            label=KINDS[kind],
        )
    figures.log_axis(panel, "x", base=2, ticks=rows.levels("depth"))
    panel.set_xlabel("depth (weight matrices)")
    panel.legend(fontsize=7.0, handlelength=1.4)

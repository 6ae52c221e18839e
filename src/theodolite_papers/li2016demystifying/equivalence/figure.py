"""Training curves of two networks that coincide, and where they differ."""

from typing import Any

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row, group_means


def table(both: PredictedAndMeasured) -> Rows:
    """Return losses, and means of the condition numbers' logarithms."""
    ratios = both.measured.where(quantity="ratio")
    means = group_means(ratios, ("setting", "kind", "depth"), log=True)
    return both.measured.where(quantity="loss") + means


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return deviations of spectra, which should be zero, and closed forms."""
    gaps = both.measured.where(quantity="spectrum_gap")
    rows: list[Row] = [
        {
            "label": f"deviation of spectra, orthogonal weights, {setting}",
            "predicted": 0.0,
            "measured": float(gaps.where(setting=setting).values().max()),
            "error": float(gaps.where(setting=setting).values("error").max()),
        }
        for setting in dict.fromkeys(gaps.column("setting"))
    ]
    ratios = both.measured.where(quantity="ratio", kind="one_shortcut")
    ratios = ratios.where(setting="linear")
    first = ratios.levels("trial")[0]
    for closed in both.predicted.where(quantity="ratio", trial=first):
        labels = {"depth": closed["depth"], "trial": closed["trial"]}
        label = "ratio, linear 1-shortcut, depth {depth}, dataset {trial}"
        measured = ratios.only(**labels)
        rows.append(compared_row(label.format(**labels), closed["value"], measured))
    return rows


KINDS = {
    "orthogonal": "plain, orthogonal",
    "one_shortcut_turned": "1-shortcut, turned labels",
    "one_shortcut": "1-shortcut, same labels",
    "xavier": "plain, Xavier",
}


def draw(table: Rows) -> "figures.Figure":
    """Draw losses along training, and condition numbers without and with ReLU."""
    figure, panels = figures.new_figure(7.0, 3.6, panels=(1, 3))
    _losses(panels[0], table.where(quantity="loss"))
    for panel, setting, title in (
        (panels[1], "linear", "linear, start"),
        (panels[2], "relu before", "ReLU, start"),
    ):
        _ratios(panel, table.where(quantity="ratio", setting=setting))
        panel.set_title(title)
        figures.power_axis(panel, "y")
        panel.set_ylabel(r"$|\lambda|_{\max}\,/\,|\lambda|_{(0.1)}$")
    figures.shared_legend(figure, columns=2)
    return figure


def _losses(panel: Any, rows: Rows) -> None:
    for kind, label in KINDS.items():
        chosen = rows.where(kind=kind)
        style = figures.kind_style(kind)
        steps, values = chosen.column("step"), chosen.values()
        if kind == "one_shortcut_turned":
            figures.band(panel, steps, values, style=style, label=label, line=False)
        else:
            figures.line(panel, steps, values, style=style)
    panel.set_title("linear, training")
    panel.set_xlabel("step of descent")
    panel.set_ylabel("loss")


def _ratios(panel: Any, rows: Rows) -> None:
    for kind in ("orthogonal", "one_shortcut", "xavier"):
        chosen = rows.where(kind=kind)
        figures.row_band(
            panel,
            chosen,
            "depth",
            error="spread",
            style=kind,
            label=KINDS[kind],
            # Plain networks are drawn below the networks that they are equal to.
            marker_size=8.0 if kind == "orthogonal" else 5.0,
        )
    figures.log_axis(panel, "x", base=2, ticks=rows.levels("depth"))
    panel.set_xlabel("weight matrices")

"""Speed against shift, an intervention a point."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Row, Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

# Points of scaled averages are one series, each isometry or place another.
SERIES = {
    "average": "average, scaled 0 to 2",
    "details": "average and details",
    "random": "random isometry",
    "branch": "average, in the branch",
}
METRICS = {"blocks": "of the two blocks", "composite": "to the scores"}


def draw(table: Rows) -> "Figure":
    """Draw what each intervention gains in speed against how it shifts spectra."""
    datasets = table.levels("dataset")
    shape = (len(datasets), 2)
    figure, panels = figures.new_figure(9.0, 3.6 * shape[0], panels=shape)
    places = [(dataset, metric) for dataset in datasets for metric in METRICS]
    for panel, (dataset, metric) in zip(panels, places, strict=True):
        rows = table.where(quantity="point", dataset=dataset, metric=metric)
        for name, label in SERIES.items():
            style = figures.series_style(name, list(SERIES))
            these = rows.where(_of(name))
            panel.errorbar(
                these.values("shift"),
                these.values(),
                xerr=these.values("shift_error"),
                yerr=these.values("error"),
                color=style.colour,
                marker=style.marker,
                linestyle="-" if name == "average" else "none",
                label=label,
            )
        figures.rule(panel, 0.0)
        found = table.only(quantity="correlation", dataset=dataset, metric=metric)
        told = f"{found['value']:.2f} ± {found['error']:.2f}"
        panel.set_title(f"{dataset}: rank correlation {told}")
        panel.set_xlabel(f"shift of the mean singular value {METRICS[metric]}")
        panel.set_ylabel(r"$\log_{10}$ of the loss saved")
    figures.legend(panels[0])
    return figure


def _of(name: str) -> "Callable[[Row], bool]":
    return lambda row: str(row["variant"]).startswith(name)

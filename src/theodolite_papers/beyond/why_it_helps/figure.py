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
KINDS = {
    "average": "average",
    "details": "average_and_details",
    "random": "random_isometry",
    "branch": "average_in_branch",
}
METRICS = {"blocks": "of the two blocks", "composite": "to the scores"}


def draw(table: Rows) -> "Figure":
    """Draw what each intervention gains in speed against how it shifts spectra."""
    datasets = table.levels("dataset")
    shape = (len(datasets), 2)
    figure, panels = figures.new_figure(7.0, 3.2 * shape[0], panels=shape, share_y=True)
    places = [(dataset, metric) for dataset in datasets for metric in METRICS]
    for panel, (dataset, metric) in zip(panels, places, strict=True):
        rows = table.where(quantity="point", dataset=dataset, metric=metric)
        for name, label in SERIES.items():
            style = figures.kind_style(KINDS[name])
            these = rows.where(_of(name))
            panel.errorbar(
                these.values("shift"),
                these.values(),
                xerr=these.values("shift_error"),
                yerr=these.values("error"),
                fmt="none",
                ecolor=style.colour,
                elinewidth=1.0,
            )
            figures.band(
                panel,
                these.values("shift"),
                these.values(),
                style=style,
                label=label,
                line=name == "average",
            )
        figures.reference_line(panel, 0.0)
        found = table.only(quantity="correlation", dataset=dataset, metric=metric)
        told = f"{found['value']:.2f} ± {found['error']:.2f}"
        panel.set_title(f"{dataset}: rank corr. {told}")
        panel.set_xlabel(f"shift of the mean singular\nvalue {METRICS[metric]}")
        panel.locator_params(axis="x", nbins=5)
        figures.power_axis(panel, "y")
        panel.set_ylabel("loss without over with it")
    figures.shared_legend(figure)
    return figure


def _of(name: str) -> "Callable[[Row], bool]":
    return lambda row: str(row["variant"]).startswith(name)

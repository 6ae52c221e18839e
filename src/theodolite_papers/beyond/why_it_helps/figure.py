"""Draw speed against shift, one point per intervention."""

import numpy as np

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    by_network,
    estimate,
    named_rows,
)

from .config import NOTHING, VARIANTS

METRICS = {"blocks": "of the two blocks", "composite": "to the scores"}


def table(both: PredictedAndMeasured) -> Rows:
    """Return mean shift and speed of each intervention, against none, with errors."""
    table: list[Row] = []
    steps = steps_of(both)
    for dataset in both.measured.levels("dataset"):
        here = both.measured.where(dataset=dataset)
        speed = here.where(quantity="log_loss", over=steps)
        for metric in METRICS:
            labels = {"dataset": dataset, "metric": metric}
            shift = here.where(quantity="mean", metric=metric)
            for variant in VARIANTS:
                across, up = (_gain(rows, variant) for rows in (shift, speed))
                if len(across) > 1:
                    x, y = estimate(across), estimate(-up)
                    point = {"shift": x.mean, "shift_error": x.stderr, **labels}
                    at = {**point, "variant": variant}
                    table += named_rows({"point": y.mean}, y.stderr, **at)
            average = estimate(list(rank_correlations(both, dataset, metric).values()))
            table += named_rows({"correlation": average.mean}, average.stderr, **labels)
    return Rows(table)


def steps_of(both: PredictedAndMeasured) -> int:
    """Return the number of steps of training."""
    return max(both.measured.levels("over"), default=0)


def rank_correlations(
    both: PredictedAndMeasured, dataset: str, metric: str, over: int | None = None
) -> dict[int, float]:
    """Return Spearman's correlation of mean singular value and speed by trial.

    It runs over the interventions of a trial, which share weights and images.
    """
    rows = both.measured.where(dataset=dataset)
    steps = steps_of(both) if over is None else over
    correlations = {}
    for trial in rows.levels("trial"):
        here = rows.where(trial=trial)
        shift, speed = (
            {row["variant"]: row["value"] for row in part}
            for part in (
                here.where(quantity="mean", metric=metric),
                here.where(quantity="log_loss", over=steps),
            )
        )
        names = [name for name in shift if name in speed]
        if len(names) > 2:
            values = np.array([[part[n] for n in names] for part in (shift, speed)])
            ranks = values.argsort(axis=1).argsort(axis=1).astype(float)
            correlations[trial] = -float(np.corrcoef(ranks)[0, 1])
    return correlations


def _gain(rows: Rows, variant: str) -> np.ndarray:
    pair = [by_network(rows.where(variant=name)) for name in (variant, NOTHING)]
    return np.array(list(pair[0].minus(pair[1]).values.values()))


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


def draw(table: Rows) -> "figures.Figure":
    """Draw the gain in speed of each intervention against its shift of the spectra."""
    datasets = table.levels("dataset")
    shape = (len(datasets), 2)
    figure, panels = figures.new_figure(7.0, 3.2 * shape[0], panels=shape, share_y=True)
    places = [(dataset, metric) for dataset in datasets for metric in METRICS]
    for panel, (dataset, metric) in zip(panels, places, strict=True):
        rows = table.where(quantity="point", dataset=dataset, metric=metric)
        for name, label in SERIES.items():
            style = figures.kind_style(KINDS[name])
            these = rows.where(lambda row, name=name: row["variant"].startswith(name))
            panel.errorbar(
                these.values("shift"),
                these.values(),
                xerr=these.values("shift_error"),
                yerr=these.values("error"),
                fmt="none",
                ecolor=style.colour,
                elinewidth=1.0,
            )
            figures.row_band(
                panel,
                these,
                "shift",
                error=None,
                style=style,
                label=label,
                line=name == "average",
            )
        figures.reference_line(panel, 0.0)
        row = table.only(quantity="correlation", dataset=dataset, metric=metric)
        text = "{value:.2f} ± {error:.2f}".format(**row)
        panel.set_title(f"{dataset}: rank corr. {text}")
        panel.set_xlabel(f"shift of the mean singular\nvalue {METRICS[metric]}")
        panel.locator_params(axis="x", nbins=5)
        figures.power_axis(panel, "y")
        panel.set_ylabel("loss without over with it")
    figures.shared_legend(figure)
    return figure

"""Draw speed against shift, one point per intervention."""

import numpy as np
from scipy import stats

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

RUN = ("dataset", "variant", "trial", "scale")
# Steps over which losses are averaged: those of figure 2(d), and all.
HORIZONS = (20, 30)
METRICS = {"blocks": "of the two blocks", "composite": "to the scores"}


def speeds(rows: Rows) -> Rows:
    """Return the decimal logarithm of the mean loss of each run, by steps and axis.

    On a linear axis it is the arithmetic mean over the first steps, on a logarithmic
    one the geometric mean.
    """
    runs: dict[tuple, list[Row]] = {}
    for row in rows.where(lambda row: row["step"] > 0, quantity="loss"):
        runs.setdefault(tuple(row[key] for key in RUN), []).append(row)
    table: list[Row] = []
    for run, kept in runs.items():
        labels = dict(zip(RUN, run, strict=True))
        for steps in HORIZONS:
            seen = [row for row in kept if row["step"] <= steps]
            losses = np.array([row["value"] for row in seen])
            error = max(row["error"] / row["value"] for row in seen) / np.log(10)
            means = {"linear": losses.mean(), "logarithmic": stats.gmean(losses)}
            for axis, mean in means.items():
                at = {**labels, "over": steps, "axis": axis}
                table += named_rows({"speed": np.log10(mean)}, error, **at)
    return Rows(table)


def table(both: PredictedAndMeasured) -> Rows:
    """Return mean shift and speed of each intervention, against none, with errors."""
    table: list[Row] = []
    for dataset in both.measured.levels("dataset"):
        here = both.measured.where(dataset=dataset)
        speed = speeds(here).where(over=HORIZONS[-1], axis="logarithmic")
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
            average = estimate(list(rank_correlations(shift, speed).values()))
            table += named_rows({"correlation": average.mean}, average.stderr, **labels)
    return Rows(table)


def rank_correlations(shift: Rows, speed: Rows) -> dict[int, float]:
    """Return Spearman's correlation of mean singular value and speed by trial.

    It runs over the interventions of a trial, which share weights and images.
    """
    correlations = {}
    for trial in shift.levels("trial"):
        first, second = (
            {row["variant"]: row["value"] for row in rows.where(trial=trial)}
            for rows in (shift, speed)
        )
        names = [name for name in first if name in second]
        if len(names) > 2:
            values = np.array([[part[n] for n in names] for part in (first, second)])
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

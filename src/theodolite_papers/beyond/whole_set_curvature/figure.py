"""Curvature over the edge of stability: along training, and all readings after it."""

import math

from theodolite import figures
from theodolite.core import (
    ByNetwork,
    Number,
    PredictedAndMeasured,
    Quantity,
    Read,
    Row,
    Rows,
    Select,
    by_network,
    compared_row,
    estimate,
    group_means,
    measured,
)

from .config import (
    BATCHES,
    DESCENT,
    END,
    FROZEN,
    FROZEN_BATCHES,
    LATE,
    RULES,
    RUNNING,
    START,
    STOCHASTIC,
    TOGETHER,
    WHOLE,
)


def edges(both: PredictedAndMeasured) -> dict[str, float]:
    """Return the curvature at which each rule stops being stable."""
    return {r["rule"]: r["value"] for r in both.predicted.where(quantity="edge")}


def from_edge(rows: Select, rule: str, *, name: str) -> Read:
    """Read the mean decimal logarithm of curvatures over the edge of a rule."""

    def read(both: PredictedAndMeasured) -> Quantity:
        edge = edges(both).get(rule, math.nan)
        logs = by_network(rows(both), log=True)
        moved = {k: v - math.log10(edge) for k, v in logs.values.items()}
        return ByNetwork(moved, logs.errors, logs.note).mean(name)

    return read


def gap(rows: Rows, high: str, low: str) -> ByNetwork:
    """Return the decimal logarithm of one reading over another, by network."""
    parts = [by_network(rows.where(reading=name), log=True) for name in (high, low)]
    return parts[0].minus(parts[1])


def growth_of_gap(rule: str) -> Read:
    """Read how much the gap of batches over the whole set grows from start to late."""

    def read(both: PredictedAndMeasured) -> Quantity:
        rows = both.measured.where(quantity="sharpness", rule=rule)
        late = gap(rows.where(lambda row: row["moment"] >= LATE), BATCHES, WHOLE)
        start = gap(rows.where(moment=START), BATCHES, WHOLE)
        return late.minus(start).mean(f"growth of log10 batches over whole set, {rule}")

    return read


def samples_less_statistics(both: PredictedAndMeasured) -> Quantity:
    """Read the factor due to few samples over that due to their statistics."""
    rows = ended(both)
    samples, statistics = gap(rows, BATCHES, TOGETHER), gap(rows, TOGETHER, WHOLE)
    name = "log10 factor due to samples less that due to statistics"
    return samples.minus(statistics).mean(name)


def ended(both: PredictedAndMeasured) -> Rows:
    """Return the readings after full-batch descent, where every kind was read."""
    return both.measured.where(quantity="sharpness", rule=DESCENT, moment=END)


CORNERS = {
    "single batches over all batches together, own statistics": (BATCHES, TOGETHER),
    "all batches together over whole set": (TOGETHER, WHOLE),
    "single batches over whole set, constant statistics": (FROZEN_BATCHES, FROZEN),
    "constant over differentiated statistics, whole set": (FROZEN, WHOLE),
    "own over constant statistics, single batches": (BATCHES, FROZEN_BATCHES),
}


def corners(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return the factors between readings after full-batch descent."""
    factors = {}
    for name, pair in CORNERS.items():
        values = list(gap(ended(both), *pair).values.values())
        if len(values) > 1:
            average = estimate(values)
            factor = 10**average.mean
            factors[name] = Number(factor, factor * math.log(10) * average.stderr)
    return factors


def table(both: PredictedAndMeasured) -> Rows:
    """Return each reading over the edge of its rule, by moment, as logarithms."""
    known = edges(both)
    rows = both.measured.where(quantity="sharpness")
    rows = group_means(rows, ("rule", "reading", "moment"), log=True)
    return Rows(
        {**row, "value": row["value"] - math.log10(known[row["rule"]])} for row in rows
    )


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return the late curvature of the whole set, and of batches, beside the edge."""
    rows = []
    late = measured("sharpness", lambda row: row["moment"] >= LATE)
    for rule, edge in edges(both).items():
        for reading in (WHOLE, BATCHES):
            kept = by_network(late.at(rule=rule, reading=reading)(both))
            if kept.values:
                average = estimate(list(kept.values.values()))
                mean = {"value": average.mean, "error": average.stderr}
                rows.append(compared_row(f"late λmax, {reading}, {rule}", edge, mean))
    return rows


TITLES = {DESCENT: "full-batch descent", STOCHASTIC: "stochastic descent"}
# From the fewest samples to the most, in the order of the rows.
LABELS = {
    BATCHES: "single batches,\nown statistics",
    TOGETHER: "all batches,\nown statistics",
    WHOLE: "whole set,\nits statistics",
    FROZEN_BATCHES: "single batches,\nthe set's, constant",
    FROZEN: "whole set,\nits own, constant",
    RUNNING: "whole set,\nrunning statistics",
}
# What there is one of is drawn in ink, as the whole set's curvature is.
KINDS = {BATCHES: "single_batches", WHOLE: "measured"}
EDGE = r"$\lambda_{\max}$ over the edge"


def draw_courses(table: Rows) -> "figures.Figure":
    """Draw the curvature of batches and of the whole set, by share of training."""
    figure, panels = figures.new_figure(7.0, 3.4, panels=(1, 2), share_y=True)
    for panel, rule in zip(panels, RULES, strict=True):
        for reading, kind in KINDS.items():
            rows = table.where(rule=rule, reading=reading)
            figures.row_band(
                panel,
                rows,
                "moment",
                error="spread",
                style=kind,
                label=LABELS[reading].replace("\n", " "),
                kind="bars",
            )
        figures.reference_line(panel, 0.0)
        panel.set_title(TITLES[rule])
        panel.set_xlabel("share of training")
        figures.power_axis(panel, "y")
    panels[0].set_ylabel(EDGE)
    figures.shared_legend(figure)
    return figure


def draw_corners(table: Rows) -> "figures.Figure":
    """Draw all readings after training, one line per reading."""
    figure, panels = figures.new_figure(7.0, 3.8, panels=(1, 2), share_y=True)
    for panel, rule in zip(panels, RULES, strict=True):
        rows = table.where(rule=rule, moment=END)
        places = [list(LABELS).index(row["reading"]) for row in rows]
        style = figures.kind_style("measured")
        panel.errorbar(
            rows.values(),
            places,
            xerr=rows.values("spread"),
            fmt="none",
            ecolor=style.colour,
            elinewidth=1.0,
        )
        figures.band(panel, rows.values(), places, style=style, line=False)
        figures.reference_line(panel, 0.0, along="y")
        panel.set_title(TITLES[rule])
        panel.set_xlabel(EDGE)
        figures.power_axis(panel, "x")
    panels[0].set_yticks(range(len(LABELS)), list(LABELS.values()))
    panels[0].set_ylim(len(LABELS) - 0.5, -0.5)
    return figure

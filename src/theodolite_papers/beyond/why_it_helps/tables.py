"""Shift and speed by intervention, and their rank correlation."""

import numpy as np

from theodolite.core import PredictedAndMeasured, Row, Rows, by_network, estimate

from .config import NOTHING, VARIANTS

METRICS = ("blocks", "composite")


def table(both: PredictedAndMeasured) -> Rows:
    """Return mean shift and speed of each intervention, against none, with errors."""
    found: list[Row] = []
    steps = steps_of(both)
    for dataset in both.measured.levels("dataset"):
        here = both.measured.where(dataset=dataset)
        speed = here.where(quantity="log_loss", over=steps)
        for metric in METRICS:
            shift = here.where(quantity="mean", metric=metric)
            for variant in VARIANTS:
                across, up = (_gain(rows, variant) for rows in (shift, speed))
                if len(across) > 1:
                    x, y = estimate(across), estimate(-up)
                    found.append(
                        {
                            "quantity": "point",
                            "dataset": dataset,
                            "metric": metric,
                            "variant": variant,
                            "shift": x.mean,
                            "shift_error": x.stderr,
                            "value": y.mean,
                            "error": y.stderr,
                        }
                    )
            told = estimate(list(rank_correlations(both, dataset, metric).values()))
            found.append(
                {
                    "quantity": "correlation",
                    "dataset": dataset,
                    "metric": metric,
                    "value": told.mean,
                    "error": told.stderr,
                }
            )
    return Rows(found)


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
    found = {}
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
            ranks = [_ranks([part[name] for name in names]) for part in (shift, speed)]
            found[trial] = -float(np.corrcoef(np.array(ranks))[0, 1])
    return found


def compare(both: PredictedAndMeasured) -> list[Row]:
    """There is nothing predicted to compare with."""
    return []


def _gain(rows: Rows, variant: str) -> np.ndarray:
    pair = [by_network(rows.where(variant=name)) for name in (variant, NOTHING)]
    return np.array(list(pair[0].minus(pair[1]).values.values()))


def _ranks(values: list[float]) -> np.ndarray:
    return np.argsort(np.argsort(values)).astype(float)

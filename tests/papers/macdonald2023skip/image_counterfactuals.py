"""Rows as trainings of original and modified ResNets would leave them."""

import math
from functools import cache

import numpy as np

from tests.studies.counterfactuals import claim_of, said
from theodolite.core import PredictedAndMeasured, Rows
from theodolite_papers.macdonald2023skip.shared.printed_tables import printed_rows

RATES = (0.2, 0.1, 0.05, 0.02)
EPOCHS = 6


def jitter(*numbers):
    """A small number that differs from network to network."""
    return 0.01 * math.cos(7 * sum((k + 1) * x for k, x in enumerate(numbers)))


def run(loss, error, rate, scale, trial, *, status, dataset, reached=EPOCHS):
    """Return the rows of one network."""
    fate = {"rate": rate, "added_identity": scale, "trial": trial, "status": status,
            "dataset": dataset, "classes": 10, "epochs": EPOCHS}  # fmt: skip
    rows = [{"quantity": "reached", "value": reached, "error": 0.0, **fate}]
    for epoch in range(1, reached + 1):
        value = loss(rate, scale, trial, epoch)
        at = {"epoch": epoch, "error": 0.0, **fate}
        rows.append({"quantity": "train_loss", "value": value, **at})
    end = {"epoch": EPOCHS, "error": 0.0, **fate}
    if reached == EPOCHS:
        for name in ("test_error", "test_error_batch"):
            value = error(rate, scale, trial, name)
            rows.append({"quantity": name, "value": value, **end})
    return rows


@cache
def printed_exponent(rate, scale):
    """The decimal logarithm of a loss that table 1 prints."""
    printed = printed_rows(1).where(quantity="printed_loss", rate=rate)
    return math.log10(printed.only(added_identity=scale)["value"])


def paper_loss(rate, scale, trial, epoch):
    """Losses that end as table 1 prints, the modified one lower all along but last."""
    last = printed_exponent(rate, scale)
    if epoch == EPOCHS:
        return 10 ** (last + 0.2 * jitter(rate, scale, trial))
    start = math.log10(2.0) - 0.1 * scale
    share = (epoch - 1) / EPOCHS
    logarithm = start * (1 - share) + share * (last - 0.2 * scale)
    return 10 ** (logarithm + 0.2 * jitter(rate, scale, trial, epoch))


def paper_error(rate, scale, trial, name):
    """Errors as table 1 prints, alike at the best rates."""
    base = {0.2: 0.5, 0.1: 0.0847, 0.05: 0.0882, 0.02: 0.1078}[rate]
    return base + 0.02 * jitter(rate, scale, trial, len(name))


def made_rows(
    loss=paper_loss,
    error=paper_error,
    *,
    trials=4,
    rates=RATES,
    status=None,
    dataset="cifar10",
):
    """Return rows with losses, errors and fates of our choice."""
    fate = status or (lambda rate, scale, trial: "finished")
    return Rows(
        row
        for rate in rates
        for scale in (0.0, 1.0)
        for trial in range(trials)
        for row in run(
            loss,
            error,
            rate,
            scale,
            trial,
            status=fate(rate, scale, trial),
            dataset=dataset,
        )
    )


def verdict(study, name, rows, printed=None):
    """Return what is said of a claim on rows, printed and corrected."""
    theory = printed_rows(1, 2, 3) if printed is None else printed
    return said(claim_of(study, name).rule(PredictedAndMeasured(theory, rows)))


def noisy(spread):
    """Losses of which no order can be told."""

    def loss(rate, scale, trial, epoch):
        base = paper_loss(rate, 0.0, trial, epoch)
        return base * 10 ** (spread * np.sin(11 * trial + 5 * scale + 100 * rate))

    return loss

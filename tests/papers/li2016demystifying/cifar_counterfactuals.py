"""Rows as trainings of pre-activation networks would leave them."""

import numpy as np

from tests.studies.counterfactuals import claim_of, said
from theodolite.core import PredictedAndMeasured, Rows

TRIALS, EPOCHS = range(4), 2


def made_rows(
    error=None,
    norm=None,
    *,
    depths=(38, 74, 110),
    shortcuts=(1, 2, 3, 4),
    status="finished",
    epochs=EPOCHS,
):
    """Return rows with errors and norms of our choice."""
    error = error or (lambda n, depth, trial: 0.2)
    norm = norm or (lambda depth, epoch, trial: 5.0)
    found = []
    for n in shortcuts:
        for depth in depths:
            for trial in TRIALS:
                labels = {"shortcut": n, "depth": depth, "trial": trial,
                          "status": status, "epochs": epochs}  # fmt: skip
                found.append({"quantity": "parameters", "value": 7, **labels})
                for epoch in range(epochs + 1):
                    at = {"epoch": epoch, "error": 1e-6, **labels}
                    value = error(n, depth, trial)
                    found += [
                        {"quantity": "test_error", "value": value, **at},
                        {"quantity": "norm", "value": norm(depth, epoch, trial), **at},
                    ]
    return Rows(found)


def jitter(trial):
    return 0.001 * np.cos(7 * trial)


def verdict(study, name, rows):
    """Return what is said of a claim on rows."""
    return said(claim_of(study, name).rule(PredictedAndMeasured(Rows(), rows)))[0]

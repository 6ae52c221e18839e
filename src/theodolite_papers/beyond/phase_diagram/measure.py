"""Networks trained at every rate, and how each run ended."""

import warnings

import numpy as np

from theodolite import training
from theodolite.core import Cell, Row, Rows
from theodolite_papers.li2016demystifying.shared.optima import least_loss

from .config import Config, data_of, phase_of, plan_of


def measure(config: Config, cell: Cell) -> Rows:
    """Train one network at every rate and return how each run ended."""
    data = data_of(config)
    with warnings.catch_warnings():
        # It is a result, not an error, if every run at a rate diverges.
        warnings.simplefilter("ignore", training.GridWarning)
        grid = training.train_grid(
            plan_of(config, cell),
            data,
            {"seed": [cell["trial"]], "lr": config.rates},
            steps=config.steps,
            record=training.AtSteps([0]),
            jobs=0,
        )
    best = least_loss(*data)
    start = float(grid.losses(lr=config.rates[0])[1][0])
    rows: list[Row] = []
    ends = grid.final_loss.ravel(), grid.final_loss_error.ravel()
    for rate, end, error in zip(config.rates, *ends, strict=True):
        phase = phase_of(float(end), start=start, best=best)
        rows.append({"lr": rate, "quantity": "phase", "value": phase, "error": 0.0})
        if np.isfinite(end):
            loss = {"value": float(end), "error": float(error)}
            rows.append({"lr": rate, "quantity": "final_loss", **loss})
    return Rows(rows)

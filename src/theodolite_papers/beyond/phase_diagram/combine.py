"""Phases predicted by closed forms at the initial weights."""

from theodolite import networks, theory
from theodolite.core import Cell, Row, Rows

from .config import DIVERGES, TRAINS, Config, data_of, phase_of, plan_of


def combine(config: Config, cell: Cell) -> Rows:
    """Predict phases from the first loss, gradient and Hessian, and by rival rules."""
    x, y = data_of(config)
    plan = plan_of(config, cell)
    weights = networks.initial_weights(plan, seed=cell["trial"])
    loss, slope = theory.relu_gradient(plan, weights, x, y)
    data = theory.moments(x, y)
    if plan.linear or plan.shortcut == 1:
        hessian = theory.linear_hessian(plan.with_(mid="identity"), weights, data)
    else:
        hessian = theory.relu_hessian(plan, weights, x, y)
    # linear_hessian orders the weights of a matrix column by column.
    spectrum = theory.gradient_spectrum(hessian, slope.transpose(0, 2, 1).ravel())
    best = data.optimal_loss()
    rows: list[Row] = []
    for rate in config.rates:
        end = loss + spectrum.change(rate, config.steps)
        phases = {
            "foretold": phase_of(end, start=loss, best=best),
            "by_sharpness": DIVERGES if rate * spectrum.largest > 2 else TRAINS,
            "all_train": TRAINS,
        }
        rows += [
            {"lr": rate, "quantity": name, "value": phase, "error": 0.0}
            for name, phase in phases.items()
        ]
    return Rows(rows)

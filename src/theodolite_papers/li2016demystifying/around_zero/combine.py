"""Spectra of Eq 3 and of ReLU networks beside printed and corrected formulas."""

import numpy as np

from theodolite import theory
from theodolite.core import Cell, Row, Rows

from ..shared.problems import gap, named
from .config import Config, dataset
from .measure import drawn_biases, hessian, relu_near_zero, rounding, with_biases


def combine(config: Config, cell: Cell) -> Rows:
    """Compare Hessians with closed forms, where a task has them."""
    tasks = {"bias": _bias, "fixed_bias": _fixed_bias, "relu": _relu}
    compared = tasks.get(cell["task"])
    if compared is None:
        return Rows()
    trial = cell["trial"]
    return Rows(row for units in config.units for row in compared(config, trial, units))


def _bias(config: Config, trial: int, units: int) -> list[Row]:
    x, y = dataset(config, trial)
    plan = with_biases(config, units, "tanh")
    matrix, values, reading, _ = hessian(config, trial, plan)
    top = float(np.abs(values).max())
    without = float(
        np.abs(theory.eigenvalues_at_zero(plan.with_(bias=False), x, y)).max()
    )
    numbers = {
        "bias_form": gap(theory.hessian_at_zero(plan, x, y), matrix, top),
        "bias_theorem": abs(top / without - 1),
    }
    return named(numbers, rounding(matrix, reading), units=units)


def _fixed_bias(config: Config, trial: int, units: int) -> list[Row]:
    r"""Compare Eq 3 at zero with constant biases: $b_r = 0$, and $b_r$ drawn."""
    x, y = dataset(config, trial)
    plan = with_biases(config, units, "tanh")
    matrix, _, reading, _ = hessian(config, trial, plan, biases="zero")
    theorem = theory.hessian_at_zero(plan.with_(bias=False), x, y)
    numbers = {"zero_form": gap(theorem, matrix, float(np.abs(matrix).max()))}
    rows = named(numbers, rounding(matrix, reading), units=units)
    plan = with_biases(config, units, "relu")
    matrix, _, reading, _ = hessian(config, trial, plan, biases="drawn")
    closed = _with_constants(drawn_biases(config, trial, units), x, y)
    numbers = {"fixed_form": gap(closed, matrix, float(np.abs(matrix).max()))}
    return rows + named(numbers, rounding(matrix, reading), units=units)


def _with_constants(biases: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    r"""Return the Hessian at zero of Eq 3 with constant biases.

    Last matrices couple by $\sigma(b_r)\sigma(b_s)^T \otimes I$; column $j$ of a last
    matrix meets row $j$ of its unit's first by $\sigma'(b_{r,j})\,M$.
    """
    units, d = biases.shape
    relu, pull = theory.activation("relu"), theory.moments(x, y).gap
    signal = relu.value(biases)
    blocks = np.zeros((units, 2, d, d, units, 2, d, d))
    blocks[:, 1, :, :, :, 1] = np.einsum("rj,sk,ab->rjaskb", signal, signal, np.eye(d))
    for r in range(units):
        for j, slope in enumerate(relu.slope(biases[r])):
            blocks[r, 1, j, :, r, 0, :, j] = slope * pull
            blocks[r, 0, :, j, r, 1, j, :] = slope * pull.T
    return blocks.reshape(2 * units * d * d, -1)


def _relu(config: Config, trial: int, units: int) -> list[Row]:
    x, y = dataset(config, trial)
    plan = relu_near_zero(config, units)
    matrix, values, reading, weights = hessian(config, trial, plan)
    top = float(np.abs(values).max())
    numbers = {
        "printed": gap(theory.eigenvalues_at_zero(plan, x, y), values, top),
        "half_space": gap(
            theory.relu_spectrum_near_zero(weights[::2], x, y), values, top
        ),
    }
    return named(numbers, rounding(matrix, reading), units=units)

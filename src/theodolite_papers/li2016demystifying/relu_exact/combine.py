"""Exact Hessians of ReLU networks at the weights of built ones."""

import numpy as np

from theodolite import networks, theory
from theodolite.core import Row, Rows

from ..shared.hessians import matrix_spectrum
from ..shared.problems import EPS, gap, named
from .config import TWO, Config
from .measure import (
    Cell,
    built,
    gauss_newton,
    hessian,
    is_measured,
    key,
    readings,
    samples_of,
)


def combine(config: Config, cell: Cell) -> Rows:
    """Compare a cell's Hessian with the exact one; use only the exact one when deep."""
    task = {"digits": _digits, "limit": _limit}.get(cell["task"], _parts)
    return Rows(task(config, cell))


def _digits(config: Config, cell: Cell) -> list[Row]:
    if cell["kind"] != TWO:
        return []
    network, (x, y) = built(config, cell), samples_of(config, cell)
    matrix = theory.relu_hessian(network.blueprint, networks.get_weights(network), x, y)
    if is_measured(config, cell):
        measured, reading = hessian(config, key(cell))
        error = reading.asymmetry + EPS * len(measured)
        scale = float(np.abs(measured).max())
        return named({"exact_gap": gap(matrix, measured, scale)}, error)
    spectrum = matrix_spectrum(matrix)
    return [{**row, "method": "exact, at weights"} for row in readings(spectrum)]


def _parts(config: Config, cell: Cell) -> list[Row]:
    """Compare the parts of the exact Hessian with measured ones, and with rivals."""
    network, (x, y) = built(config, cell), samples_of(config, cell)
    plan, weights = network.blueprint, networks.get_weights(network)
    parts = theory.relu_hessian_parts(plan, weights, x, y)
    matrix, reading = hessian(config, key(cell))
    newton = gauss_newton(config, key(cell))
    open_gates = theory.linear_hessian(
        plan.with_(mid="identity"), weights, theory.moments(x, y)
    )
    scale = float(np.abs(matrix).max())
    numbers = {
        "whole": gap(parts.whole, matrix, scale),
        "gauss_newton": gap(parts.gauss_newton, newton, scale),
        "without_residual": gap(parts.gauss_newton, matrix, scale),
        "open_gates": gap(open_gates, matrix, scale),
    }
    rows = named(numbers, EPS * len(matrix) + reading.asymmetry)
    return [*rows, *named({"margin": parts.margin}, EPS)]


def _limit(config: Config, cell: Cell) -> list[Row]:
    """Return how far the spectrum is from that of half-space moments."""
    x, y = samples_of(config, cell)
    values = np.linalg.eigvalsh(hessian(config, key(cell))[0])
    first = networks.get_weights(built(config, cell))[::2]
    wanted = theory.relu_spectrum_near_zero(first, x, y)
    numbers = {"limit_gap": gap(wanted, values, float(np.abs(values).max()))}
    size = float(cell["state"].split(" ")[0])
    return named(numbers, EPS * len(values), scale=size)

"""Entries and eigenvalues of measured Hessians beside the printed formulas."""

from collections.abc import Mapping

import numpy as np

from theodolite import theory
from theodolite.core import Cell, Row, Rows

from ..shared.problems import EPS, gap, named
from .config import Config, dataset
from .measure import Measured, hessians

Samples = tuple[np.ndarray, np.ndarray]


def combine(config: Config, cell: Cell) -> Rows:
    """Compare with Eqs 23 to 32, and losses at zero with the best linear map."""
    data, n = cell["data"], cell["n"]
    if data == "picture" or n > 2:
        return Rows()
    samples = dataset(config, data, cell["trial"])
    rows: list[Row] = []
    for network in hessians(config, data, n, cell["trial"]):
        if n == 2 and network.setting == "linear":
            least = theory.moments(*samples).optimal_loss()
            value = network.reading.loss / least - 1
            error = EPS * len(samples[0]) * (1 + value)
            rows += named({"excess": value}, error, **network.labels)
        if data == "random":
            compared = _one_shortcut if n == 1 else _two_shortcut
            rows += compared(network, samples)
    return Rows(rows)


def _rivals(network: Measured, name: str, others: Mapping[str, float]) -> list[Row]:
    """Return the distance of each rival of a formula, one row per rival."""
    return [
        row
        for rival, value in others.items()
        for row in named({name: value}, network.rounding, rival=rival, **network.labels)
    ]


def _two_shortcut(network: Measured, samples: Samples) -> list[Row]:
    plan, scale = network.plan, network.scale
    lower = network.blocks[1, 0]
    data, eye = theory.data_matrix(plan, *samples), np.eye(plan.width)
    k = theory.commutation(plan.width)
    # A rival for the spectrum: magnitudes of eigenvalues of M for singular values.
    other = np.repeat(np.abs(np.linalg.eigvals(data)), plan.width * plan.units)
    other = np.sort(np.concatenate([-other, other]))
    gaps = {
        "entries": gap(np.kron(eye, data) @ k, lower, scale),
        "spectrum": gap(
            theory.eigenvalues_at_zero(plan, *samples), network.values, scale
        ),
    }
    return [
        *named(gaps, network.rounding, **network.labels),
        *_rivals(
            network,
            "entries_rival",
            {
                "no commutation": gap(np.kron(eye, data), lower, scale),
                "M transposed": gap(np.kron(eye, data.T) @ k, lower, scale),
            },
        ),
        *_rivals(
            network,
            "spectrum_rival",
            {"eigenvalues of M": gap(other, network.values, scale)},
        ),
    ]


def _one_shortcut(network: Measured, samples: Samples) -> list[Row]:
    plan, scale, data = network.plan, network.scale, theory.moments(*samples)
    closed = theory.hessian_at_zero(plan, *samples)
    printed = np.kron(data.xx, np.eye(plan.width))
    gaps = {
        "closed_form": gap(closed, network.matrix, scale),
        "printed_diagonal": gap(printed, network.blocks[0, 0], scale),
    }
    rows = named(gaps, network.rounding, **network.labels)
    if plan.units == 1:
        return rows
    lower = network.blocks[1, 0]
    pull = np.kron(np.eye(plan.width), data.gap)
    below = gap(printed + pull @ theory.commutation(plan.width), lower, scale)
    rows += named({"printed_lower": below}, network.rounding, **network.labels)
    rival = {"no commutation": gap(printed + pull, lower, scale)}
    return rows + _rivals(network, "lower_rival", rival)

"""Closed forms beside measured weights and Hessians, network by network."""

import numpy as np

from theodolite import networks
from theodolite.core import (
    Cell,
    Row,
    Rows,
    ShortcutBlueprint,
    condition_of,
    named_rows,
    stream,
)
from theodolite.theory import eigenvalues_at_zero, linear_hessian, moments

from ..shared.hessians import gap_row, matrix_spectrum, measured_hessian
from ..shared.problems import EPS, gap
from ..shared.whitened import whitened
from .config import Config
from .measure import built, hessian, readings


def combine(config: Config, cell: Cell) -> Rows:
    """Compare measured Hessians with those from moments; use only these when deep."""
    x, y = whitened(config.dataset, config.width)
    if cell["kind"] == "conventions":
        return Rows(_conventions(config, x, y))
    plan, network = built(config, cell)
    weights = networks.get_weights(network)
    matrix = linear_hessian(plan, weights, moments(x, y))
    rows: list[Row] = []
    if cell["depth"] <= config.measured_depth:
        rows.append(
            gap_row("moments_gap", matrix, *hessian(config, tuple(cell.items())))
        )
    else:
        spectrum = matrix_spectrum(matrix)
        rows += [{**row, "method": "second moments"} for row in readings(spectrum)]
    if cell["depth"] <= config.samples_depth and cell["trial"] in config.seeds[:2]:
        measured = measured_hessian(network, x, y)
        rows.append(gap_row("samples_gap", matrix, *measured))
    if cell["kind"] == "orthogonal" and cell["depth"] <= 8:
        rows.append(_rotated(plan, weights, np.linalg.eigvalsh(matrix), x, y))
    return Rows(rows)


def _rotated(
    plan: ShortcutBlueprint,
    weights: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
) -> Row:
    """Compare with a 1-shortcut network at zero; the whole map rotates its labels."""
    whole = np.eye(plan.width)
    for w in weights:
        whole = w @ whole
    twin = ShortcutBlueprint(width=plan.width, depth=plan.depth, shortcut=1)
    other = eigenvalues_at_zero(twin, x, y @ whole)
    straight = eigenvalues_at_zero(twin, x, y)
    scale = float(np.abs(values).max())
    (row,) = named_rows(
        {"rotated_gap": gap(values, other, scale)},
        EPS * len(values),
        unrotated=gap(values, straight, scale),
    )
    return row


def _conventions(config: Config, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """Return the condition number for each choice of percentile, signs and order."""
    plan = ShortcutBlueprint(width=config.width, depth=2)
    values = eigenvalues_at_zero(plan, x, y)
    rows: list[Row] = []
    for method in ("linear", "lower", "higher"):
        read = condition_of(values, interpolation=method)
        rows += named_rows({"percentile": read.ratio}, read.error, method=method)
    rng = stream(config.seed, "conventions")
    data, d = moments(x, y), config.width
    conditions = []
    for _ in range(config.n_conventions):
        turn = np.eye(d)[rng.permutation(d)] * rng.choice([-1.0, 1.0], size=d)
        classes = np.eye(d)[rng.permutation(d)]
        single = np.linalg.svd(np.eye(d) - classes @ data.yx @ turn, compute_uv=False)
        conditions.append(single[0] / single[-1])
    for name, value in (("least", min(conditions)), ("most", max(conditions))):
        error = EPS * d * float(value) ** 2
        rows += named_rows({f"convention_{name}": value}, error)
    return rows

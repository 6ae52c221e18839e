"""Where closed forms meet measured weights and Hessians, network by network."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Row, Rows, ShortcutBlueprint, condition_of, stream
from theodolite.theory import eigenvalues_at_zero, linear_hessian, moments

from ..shared.hessians import measured_hessian
from ..shared.problems import EPS, gap
from ..shared.whitened import whitened
from .config import Config
from .measure import built, hessian, readings


def combine(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Compare Hessians with those from moments, and go deeper by the latter."""
    x, y = whitened(config.dataset, config.width)
    if cell["kind"] == "conventions":
        return Rows(_conventions(config, x, y))
    plan, network = built(config, cell)
    weights = networks.get_weights(network)
    matrix = linear_hessian(plan, weights, moments(x, y))
    rows: list[Row] = []
    if cell["depth"] <= config.measured_depth:
        found, reading = hessian(config, tuple(cell.items()))
        rows.append(_meeting("moments_gap", matrix, found, reading))
    else:
        spectrum = instruments.spectrum(_operator(matrix))
        rows += [{**row, "method": "second moments"} for row in readings(spectrum)]
    if cell["depth"] <= config.samples_depth and cell["trial"] in config.seeds[:2]:
        found, reading = measured_hessian(network, x, y)
        rows.append(_meeting("samples_gap", matrix, found, reading))
    if cell["kind"] == "orthogonal" and cell["depth"] <= 8:
        rows.append(_rotated(plan, weights, np.linalg.eigvalsh(matrix), x, y))
    return Rows(rows)


def _operator(matrix: np.ndarray) -> Any:
    import torch

    return instruments.MatrixOperator(torch.from_numpy(matrix), symmetric=True)


def _meeting(name: str, matrix: np.ndarray, found: np.ndarray, reading: Any) -> Row:
    """Say how far the Hessian from moments is from a measured one."""
    return {
        "quantity": name,
        "value": gap(matrix, found, float(np.abs(found).max())),
        "error": reading.asymmetry + EPS * len(found),
        "norm_mode": str(reading.norm_mode),
        "method": reading.method,
    }


def _rotated(
    plan: ShortcutBlueprint,
    weights: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
) -> Row:
    """Compare with a 1-shortcut network at zero, labels turned by the whole map."""
    whole = np.eye(plan.width)
    for w in weights:
        whole = w @ whole
    twin = ShortcutBlueprint(width=plan.width, depth=plan.depth, shortcut=1)
    other = eigenvalues_at_zero(twin, x, y @ whole)
    straight = eigenvalues_at_zero(twin, x, y)
    scale = float(np.abs(values).max())
    return {
        "quantity": "rotated_gap",
        "value": float(np.abs(values - other).max()) / scale,
        "error": EPS * len(values),
        "unrotated": float(np.abs(values - straight).max()) / scale,
    }


def _conventions(config: Config, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """How much of the number is a choice of percentile, of signs and of orders."""
    plan = ShortcutBlueprint(width=config.width, depth=2)
    values = eigenvalues_at_zero(plan, x, y)
    rows: list[Row] = [
        {
            "quantity": "percentile",
            "method": method,
            "value": condition_of(values, interpolation=method).ratio,
            "error": condition_of(values, interpolation=method).error,
        }
        for method in ("linear", "lower", "higher")
    ]
    rng = stream(config.seed, "conventions")
    data, d = moments(x, y), config.width
    found = []
    for _ in range(config.n_conventions):
        turn = np.eye(d)[rng.permutation(d)] * rng.choice([-1.0, 1.0], size=d)
        classes = np.eye(d)[rng.permutation(d)]
        single = np.linalg.svd(np.eye(d) - classes @ data.yx @ turn, compute_uv=False)
        found.append(single[0] / single[-1])
    for name, value in (("least", min(found)), ("most", max(found))):
        rows.append(
            {
                "quantity": f"convention_{name}",
                "value": float(value),
                "error": EPS * d * float(value) ** 2,
            }
        )
    return rows

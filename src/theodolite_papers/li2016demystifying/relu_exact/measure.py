"""Hessians of nonlinear networks by double backward."""

from functools import lru_cache
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Cell, Row, Rows, column_major

from ..shared.hessians import measured_hessian
from ..shared.problems import EPS, named, random_data
from ..shared.whitened import whitened
from .config import TWO, Config, plan_of, small_plan


def measure(config: Config, cell: Cell) -> Rows:
    """Measure one network's Hessian, and the error term within its layers."""
    if cell["task"] == "digits":
        if not is_measured(config, cell):
            return Rows()
        return Rows(readings(instruments.spectrum_of(hessian(config, key(cell))[1])))
    return Rows() if cell["task"] == "limit" else Rows(_within_layers(config, cell))


def is_measured(config: Config, cell: Cell) -> bool:
    """Return whether a network on digits is measured by double backward."""
    if cell["kind"] != TWO:
        return True
    early = cell["trial"] in config.seeds[:2]
    return early and cell["depth"] <= config.measured_depth


def samples_of(config: Config, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and targets of a cell."""
    if cell["task"] != "digits":
        return random_data(
            config.seed, samples=config.samples, width=config.random_width
        )
    x, y = whitened(config.dataset, config.width)
    kept = len(x) if cell["kind"] == TWO else config.one_samples
    return x[:kept], y[:kept]


def built(config: Config, cell: Cell) -> Any:
    """Return a cell's network, trained if the cell's state says so."""
    if cell["task"] == "digits":
        plan = plan_of(config, cell["kind"], cell["depth"])
        return networks.build(plan, seed=cell["trial"], device=config.device)
    plan = small_plan(config, cell["units"])
    network = networks.build(plan, seed=cell["trial"], device=config.device)
    first, second = cell["state"].split(" ")
    factor = 0.5 if first == "step" else float(first)
    networks.set_weights(network, factor * networks.get_weights(network))
    if first == "step":
        _descend(network, samples_of(config, cell), config.rate, int(second))
    return network


def _descend(network: Any, samples: tuple, rate: float, steps: int) -> None:
    """Take steps of gradient descent."""
    import torch

    device = next(network.parameters()).device
    x, y = (torch.tensor(part, device=device) for part in samples)
    loss = instruments.HalfSquareLoss()
    for _ in range(steps):
        slopes = torch.autograd.grad(loss(network(x), y), list(network.parameters()))
        with torch.no_grad():
            for weight, slope in zip(network.parameters(), slopes, strict=True):
                weight.sub_(rate * slope)


def key(cell: Cell) -> tuple[tuple[str, Any], ...]:
    """Return a cell as a hashable cache key."""
    return tuple(cell.items())


@lru_cache(maxsize=1)  # `combine` needs it right after, in the same cell
def hessian(config: Config, cell: tuple[tuple[str, Any], ...]) -> tuple:
    """Measure a network's Hessian."""
    labels = dict(cell)
    return measured_hessian(built(config, labels), *samples_of(config, labels))


@lru_cache(maxsize=1)
def gauss_newton(config: Config, cell: tuple[tuple[str, Any], ...]) -> np.ndarray:
    """Measure a network's Gauss–Newton matrix."""
    labels = dict(cell)
    return _newton(built(config, labels), *samples_of(config, labels))


def _newton(network: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    import torch

    device = next(network.parameters()).device
    batch = tuple(torch.tensor(part, device=device) for part in (x, y))
    operator = instruments.GaussNewton(
        network, batch, loss=instruments.HalfSquareLoss(), norm_mode="eval"
    )
    order = column_major([tuple(p.shape) for p in network.parameters()])
    return operator.dense()[np.ix_(order, order)]


def readings(spectrum: Any) -> list[Row]:
    """Return the percentile ratio, its two parts and the mean magnitude."""
    condition = spectrum.condition()
    values = {
        "ratio": (condition.ratio, condition.ratio_error),
        "largest": (condition.largest, condition.largest_error),
        "small": (condition.small, condition.small_error),
        "mean_size": (
            float(np.abs(spectrum.eigenvalues).mean()),
            spectrum.eigenvalue_error,
        ),
    }
    labels = {
        "status": str(condition.status),
        "norm_mode": str(condition.norm_mode),
        "method": condition.method,
    }
    return [
        {"quantity": name, "value": value, "error": error, **labels}
        for name, (value, error) in values.items()
    ]


def _within_layers(config: Config, cell: Cell) -> list[Row]:
    """Return the largest entry of the error term within a layer, for ReLU and tanh."""
    x, y = samples_of(config, cell)
    matrix, reading = hessian(config, key(cell))
    scale = float(np.abs(matrix).max())
    smooth = networks.build(
        small_plan(config, cell["units"], mid="tanh"), seed=0, device=config.device
    )
    networks.set_weights(smooth, networks.get_weights(built(config, cell)))
    curved = measured_hessian(smooth, x, y)[0] - _newton(smooth, x, y)
    size = config.random_width**2
    numbers = {
        "within": _within(matrix - gauss_newton(config, key(cell)), size) / scale,
        "within_tanh": _within(curved, size) / scale,
    }
    return named(numbers, EPS * len(matrix) + reading.asymmetry)


def _within(matrix: np.ndarray, size: int) -> float:
    """Return the largest entry of the diagonal blocks, one block per layer."""
    count = len(matrix) // size
    blocks = matrix.reshape(count, size, count, size)
    return max(float(np.abs(blocks[k, :, k]).max()) for k in range(count))

"""Losses near zero, and Hessians of units with biases and with ReLU."""

from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Cell, Row, Rows, ShortcutBlueprint, condition_of, stream

from ..shared.hessians import at_zero, measured_hessian
from ..shared.problems import EPS, SETTINGS, named
from .config import ORDERS, Config, dataset


def measure(config: Config, cell: Cell) -> Rows:
    """Measure one task on one dataset."""
    trial = cell["trial"]
    if cell["task"] == "contact":
        return Rows(_contact(config, trial))
    of_task = {"bias": _bias, "fixed_bias": _fixed_bias, "relu": _relu}[cell["task"]]
    return Rows(row for units in config.units for row in of_task(config, trial, units))


def _contact(config: Config, trial: int) -> list[Row]:
    """Measure the order of contact along a random direction and its mirror."""
    rows: list[Row] = []
    for n, setting in product(ORDERS, ("linear", "tanh")):
        plan = ShortcutBlueprint(
            width=config.width, depth=2 * n, shortcut=n, **SETTINGS[setting]
        )
        way = networks.initial_weights(plan.with_(init="xavier"), seed=trial)
        mirror = way.copy()
        mirror[n - 1 :: n] *= -1
        # High powers of a small step would be smaller than the rounding of the loss.
        loss, t = _loss_of(plan, config, trial), (n - 1) * config.step
        start = loss(0 * way)
        change = [loss(s * way) - start for s in (t / 2, t, 2 * t)]
        both = change[1], loss(t * mirror) - start
        rounding = EPS * config.samples * start
        labels = {"n": n, "setting": setting}
        numbers = {"lower": min(both) / t**n, "upper": max(both) / t**n}
        rows += named(numbers, rounding / t**n, **labels)
        # The step from t/2 to t is the estimate, its change from t to 2t the error.
        orders = [float(np.log2(abs(b / a))) for a, b in pairwise(change)]
        error = abs(orders[0] - orders[1]) + 4 * rounding / abs(change[0])
        rows += named({"order": orders[0]}, error, **labels)
    return rows


def _loss_of(plan: ShortcutBlueprint, config: Config, trial: int) -> Any:
    """Return the loss of a network as a function of its weights."""
    import torch

    network = at_zero(plan, config.device)
    samples = dataset(config, trial)
    inputs, targets = (torch.tensor(part, device=config.device) for part in samples)

    def loss(weights: np.ndarray) -> float:
        networks.set_weights(network, weights)
        with torch.no_grad():
            return float(instruments.HalfSquareLoss()(network(inputs), targets))

    return loss


@lru_cache(maxsize=8)  # `combine` needs it right after, in the same cell
def hessian(
    config: Config, trial: int, plan: ShortcutBlueprint, *, biases: str = "parameters"
) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
    """Return Hessian, eigenvalues, reading and weights of a network of a trial.

    The plan's initialisation draws the weights. Biases are "parameters", or constants
    that are "zero" or "drawn".
    """
    import torch

    network = networks.build(plan, seed=trial, device=config.device)
    tensors = dict(network.named_parameters())
    if biases == "drawn":
        drawn = drawn_biases(config, trial, plan.units)
        inner = [tensor for name, tensor in tensors.items() if name.endswith("bias")]
        with torch.no_grad():
            for tensor, values in zip(inner, drawn, strict=True):
                tensor.copy_(torch.tensor(values))
    weights = [name for name in tensors if name.endswith("weight")]
    matrix, reading = measured_hessian(
        network,
        *dataset(config, trial),
        params=None if biases == "parameters" else weights,
    )
    values = np.linalg.eigvalsh(matrix)
    return matrix, values, reading, networks.get_weights(network)


def drawn_biases(config: Config, trial: int, units: int) -> np.ndarray:
    """Return constant biases of Eq 3, one row per unit; each row's last is negative."""
    drawn = stream(trial, "fixed_bias").normal(1.0, 0.25, size=(units, config.width))
    drawn[:, -1] *= -1
    return drawn


def with_biases(config: Config, units: int, mid: str) -> ShortcutBlueprint:
    """Return the network of Eq 3 at zero, with some activation."""
    return ShortcutBlueprint(
        width=config.width, depth=2 * units, mid=mid, bias=True, init="zero"
    )


def relu_near_zero(config: Config, units: int) -> ShortcutBlueprint:
    """Return a 2-shortcut ReLU network at small weights."""
    return ShortcutBlueprint(
        width=config.width,
        depth=2 * units,
        mid="relu",
        init="small",
        init_scale=config.small,
    )


def rounding(matrix: np.ndarray, reading: Any) -> float:
    """Return the relative rounding of sums over a matrix, plus its asymmetry."""
    return EPS * len(matrix) + reading.asymmetry


def _bias(config: Config, trial: int, units: int) -> list[Row]:
    """Return flat directions of Eq 3 per unit and coordinate, with trained biases."""
    smooth = with_biases(config, units, "tanh")
    near = relu_near_zero(config, units).with_(bias=True)
    rows: list[Row] = []
    # Eigenvalues that are 0 at zero move by the square of the small weights.
    for plan, margin in ((smooth, 1e-10), (near, config.small)):
        size = np.abs(hessian(config, trial, plan)[1])
        flat = int((size < margin * size.max()).sum()) / (units * config.width)
        rows += named({"flat": flat}, 0.0, units=units, mid=plan.mid)
    return rows


def _fixed_bias(config: Config, trial: int, units: int) -> list[Row]:
    """Return how far Hessians with constant biases keep the form of theorem 2."""
    plan = with_biases(config, units, "relu")
    matrix, values, reading, _ = hessian(config, trial, plan, biases="drawn")
    outside, size = matrix.copy(), config.width**2
    for r in range(units):
        first, last = 2 * r * size, (2 * r + 1) * size
        outside[first:last, last : last + size] = 0
        outside[last : last + size, first:last] = 0
    relative = rounding(matrix, reading)
    numbers = {
        "off_pattern": np.abs(outside).max() / np.abs(matrix).max(),
        "slope": np.linalg.norm(reading.gradient) / reading.loss,
    }
    largest = float(np.abs(values).max())
    return [
        *named(numbers, relative, units=units),
        *named({"fixed_largest": largest}, relative * largest, units=units),
    ]


def _relu(config: Config, trial: int, units: int) -> list[Row]:
    """Return largest eigenvalue and condition of ReLU networks at small weights."""
    matrix, values, reading, _ = hessian(config, trial, relu_near_zero(config, units))
    condition = condition_of(values, quantile=0.0)
    error = rounding(matrix, reading) * condition.largest
    return [
        *named({"condition": condition.ratio}, condition.error, units=units),
        *named({"largest": condition.largest}, error, units=units),
    ]

"""Certified constants of random systems beside values by autodiff."""

import math
from typing import Any

import numpy as np

from theodolite import theory
from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    NonlinearLayer,
    Row,
    SystemBlueprint,
    named_rows,
    stream,
)

from .config import Config, Instance, instance
from .measure import network_of

TINY = 1e-10
POINTS = 3


def systems(config: Config) -> list[Row]:
    """Return ratios of sampled values to certified bounds."""
    rows: list[Row] = []
    for trial in config.seeds:
        rows += _system(config, trial)
        rows += _behind_norm(config, trial)
    return rows


def _behind_norm(config: Config, trial: int) -> list[Row]:
    """Return a Hessian norm over its bound, for plain weights before a batch norm."""
    rng = stream(config.seed, "behind", trial)
    eps = float(10 ** rng.uniform(-0.5, 0.5))
    plan = SystemBlueprint(
        inputs=5,
        layers=(
            AffineLayer(into=5, out=3),
            BatchNormLayer(features=3, eps=eps),
            NonlinearLayer(activation="tanh"),
            AffineLayer(into=3, out=3, parameterisation="weight_norm", eps=eps),
        ),
    )
    scale = float(10 ** rng.uniform(-1, 2))
    classes = rng.integers(0, 3, size=4)
    drawn = Instance(plan, rng.normal(size=(4, 5)), classes, scale, eps)
    beta = theory.smoothness_bound(plan, drawn.inputs, "cross_entropy")
    norm = _hessian_norm(drawn, network_of(drawn, trial))
    return named_rows({"behind_norm_ratio": norm / beta}, TINY, trial=trial)


def looseness(config: Config) -> list[Row]:
    """Return certified smoothness over the largest Hessian found, by blocks."""
    rows: list[Row] = []
    for blocks in config.blocks:
        for trial in config.seeds[: max(4, config.n_seeds // 4)]:
            drawn = instance(config, trial, blocks=blocks)
            beta = theory.smoothness_bound(drawn.plan, drawn.inputs, "cross_entropy")
            norm = max(
                _hessian_norm(drawn, network_of(drawn, seed, factor))
                for seed, factor in ((trial, 0.1), (trial, 1.0), (trial + 1, 1.0))
            )
            numbers = {"looseness": beta / norm}
            rows += named_rows(
                numbers, TINY * beta / norm, trial=trial, layers=blocks + 1
            )
    return rows


def _system(config: Config, trial: int) -> list[Row]:
    import torch
    from torch.nn.utils import vector_to_parameters

    drawn = instance(config, trial)
    rng = stream(config.seed, "points", trial)
    bounds = theory.system_bounds(drawn.plan, theory.extent_of(drawn.inputs))
    cost = theory.cost_bounds("cross_entropy", bounds.outputs)
    beta = bounds.smoothness(cost.gradient, cost.curvature)
    numbers = {name: 0.0 for name in _RATIOS}
    for place in range(POINTS):
        network = network_of(drawn, trial + place, float(10 ** rng.uniform(-1, 0.5)))
        here, there = _jacobian(drawn, network), None
        loss, slope, theta = _loss(drawn, network)
        formula = theory.system_jacobian(drawn.plan, weights_of(network), drawn.inputs)
        size = max(np.abs(here).max(), 1e-300)
        ratio = {
            "assembled_gap": float(np.abs(formula - here).max() / size),
            "derivative_ratio": np.linalg.norm(here, 2) / bounds.derivative,
            "hessian_ratio": _hessian_norm(drawn, network) / beta,
        }
        step = rng.normal(size=len(theta)) * 10 ** rng.uniform(-3, 1)
        vector_to_parameters(torch.tensor(theta + step), list(network.parameters()))
        there, after = _jacobian(drawn, network), _loss(drawn, network)[0]
        length = float(np.linalg.norm(step))
        moved = np.linalg.norm(here - there, 2) / length
        ratio["derivative_constant_ratio"] = moved / bounds.derivative_lipschitz
        above = after - loss - slope @ step
        ratio["descent_ratio"] = 2 * above / (beta * length**2)
        numbers = {name: max(numbers[name], ratio[name]) for name in numbers}
    # A difference of losses over a square of the step keeps fewer digits.
    errors = dict.fromkeys(numbers, TINY)
    errors |= {"descent_ratio": 1e-7, "assembled_gap": 1e-13}
    return [
        row
        for name, value in numbers.items()
        for row in named_rows({name: value}, errors[name], trial=trial)
    ]


_RATIOS = (
    "assembled_gap",
    "derivative_ratio",
    "derivative_constant_ratio",
    "hessian_ratio",
    "descent_ratio",
)


def weights_of(network: Any) -> list[Any]:
    """Return the weights of a normalised residual network, as theory takes them."""

    def of(module: Any) -> Any:
        if hasattr(module, "branch"):
            return tuple(of(part) for part in module.branch)
        return {k: v.detach().numpy() for k, v in module.named_parameters()}

    return [of(layer) for layer in network.layers]


def _jacobian(drawn: Instance, network: Any) -> np.ndarray:
    """Return DF by autodiff, rows by output and then sample."""
    import torch

    x, parameters = torch.tensor(drawn.inputs), list(network.parameters())
    outputs = network(x).T.reshape(-1)
    rows = []
    for one in outputs:
        parts = torch.autograd.grad(one, parameters, retain_graph=True)
        rows.append(torch.cat([part.reshape(-1) for part in parts]))
    return torch.stack(rows).numpy()


def _loss(drawn: Instance, network: Any) -> tuple[float, np.ndarray, np.ndarray]:
    import torch

    parameters = list(network.parameters())
    outputs = network(torch.tensor(drawn.inputs))
    loss = torch.nn.functional.cross_entropy(outputs, torch.tensor(drawn.classes))
    slope = torch.autograd.grad(loss, parameters)
    flat, at = (
        torch.cat([part.detach().reshape(-1) for part in parts]).numpy()
        for parts in (slope, parameters)
    )
    return float(loss.detach()), flat, at


def _hessian_norm(drawn: Instance, network: Any) -> float:
    import torch

    from theodolite.instruments import hessian

    batch = torch.tensor(drawn.inputs), torch.tensor(drawn.classes)
    reading = hessian(
        network, batch, loss=torch.nn.CrossEntropyLoss(), norm_mode="batch"
    )
    norm = float(np.linalg.norm(reading.matrix, 2))
    return norm if math.isfinite(norm) else math.inf

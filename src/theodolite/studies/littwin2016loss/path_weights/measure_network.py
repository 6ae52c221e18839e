"""The terms of a network's output by path length, and its losses over coins."""

from typing import Any

import numpy as np

from theodolite.core import PathBlueprint, Row, stream
from theodolite.studies.littwin2016loss.path_weights.config import (
    CHANCE,
    COINS,
    Config,
    network,
)
from theodolite.studies.littwin2016loss.shared.coins import coin_outputs
from theodolite.studies.littwin2016loss.shared.enumeration import propagated
from theodolite.studies.littwin2016loss.shared.recording import built, recorded
from theodolite.studies.littwin2016loss.shared.rows import EPS, by_length, named


def of_network(config: Config, trial: int) -> list[Row]:
    """Take networks with shared weights apart, and losses of one with coins."""
    plan = network()
    module = built(plan, seed=trial, device=config.device)
    weights = module.weights.detach().cpu().numpy()
    x = stream(trial, "terms").normal(size=(1, plan.inputs))
    # All gates may be closed at an input, but not at the opposite one as well.
    x = x if recorded(module, x).output[0] > 0 else -x
    gates = [gate[0] for gate in recorded(module, x).gates]
    rows = _terms(plan, np.abs(weights), np.abs(x[0]))
    return rows + _scale_slope(plan, weights, x, gates) + _losses(trial)


def _terms(plan: PathBlueprint, weights: np.ndarray, x: np.ndarray) -> list[Row]:
    """Read the weights of Eq 14 off the mean output; all is positive, none cancels."""
    matrices = [weights[index] for index in plan.indices]
    lengths = np.arange(1, plan.depth + 1)
    every = [np.ones(plan.width)] * plan.depth
    terms = CHANCE**lengths * propagated(matrices, every, x)
    # All x̃ are one variable, so that the sum over configurations is a power.
    variable = x.sum() / np.sqrt(plan.inputs)
    first = terms / (variable * (weights.sum() / plan.rms) ** lengths)
    spread = first * np.sqrt(plan.parameters) ** lengths
    error = EPS * plan.width * plan.depth
    rows = by_length("line_one", first, error * float(first.max()))
    return rows + by_length("epsilon", spread / np.linalg.norm(spread), error)


def _scale_slope(
    plan: PathBlueprint, weights: np.ndarray, x: np.ndarray, gates: list[np.ndarray]
) -> list[Row]:
    r"""Compare $\partial Y/\partial C$ by autodiff with Eq 19, gates frozen."""
    import torch

    scale = torch.tensor(plan.rms, dtype=torch.float64, requires_grad=True)
    unit = torch.as_tensor(weights / plan.rms)
    signal = torch.as_tensor(x)
    for layer, index in enumerate(plan.indices):
        gate = torch.as_tensor(gates[layer].astype(np.float64))
        branch = (signal @ (scale * unit)[torch.as_tensor(index)]) * gate
        signal = branch + signal if layer else branch
    (slope,) = torch.autograd.grad(signal.sum(), scale)
    matrices = [weights[index] for index in plan.indices]
    terms = propagated(matrices, gates, x[0])
    by_degree = float(terms @ np.arange(1, plan.depth + 1))
    size = float(np.abs(terms) @ np.arange(1, plan.depth + 1))
    found: dict[str, Any] = {
        "slope_gap": abs(float(slope) - by_degree) / size,
        "slope_times_scale_gap": abs(plan.rms * float(slope) - by_degree) / size,
    }
    return named(found, EPS * plan.width * plan.depth)


def _losses(trial: int) -> list[Row]:
    """Say how far mean losses over coins are from an affine map of mean outputs."""
    plan = PathBlueprint(**COINS)
    module = built(plan, seed=trial)
    x = 2 * stream(trial, "losses").normal(size=(64, plan.inputs))
    matrices = recorded(module, x).matrices
    outputs, chances = coin_outputs(matrices, x, chance=CHANCE)
    mean = chances @ outputs
    losses = {
        "hinge": chances @ np.maximum(0.0, 1 - outputs),
        "absolute": chances @ np.abs(1 - outputs),
    }
    rows: list[Row] = []
    for name, loss in losses.items():
        left = 1 - np.corrcoef(mean, loss)[0, 1] ** 2
        rows += named({"not_affine": left}, 1e-13, loss=name)
    return rows

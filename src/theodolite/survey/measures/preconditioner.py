"""How an adaptive optimiser scales each parameter: from its state, or a first guess."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

Parameters = Mapping[str, Tensor]


def scales_of(
    optimizer: Optimizer | None, parameters: Parameters, gradients: Parameters
) -> tuple[Tensor, str]:
    r"""Return the diagonal of $P^{-1/2}$, and where it comes from.

    $P = \sqrt{v} + \epsilon$ with $v$ the running mean of squared gradients in the
    optimiser's state, or the squared gradient itself, as at a first step. If there is
    a state, parameters that the optimiser does not hold get 0: they never move.

    Args:
        optimizer: The optimiser in use.
        parameters: In the order of the Hessian's columns.
        gradients: Gradients of the loss, by the same names.
    """
    groups = {} if optimizer is None else _groups(optimizer)
    held = {n: p for n, p in parameters.items() if id(p) in groups}
    states = {n: _squares(optimizer, p) for n, p in held.items()}
    stated = bool(held) and all(state is not None for state in states.values())
    flat = []
    for name, parameter in parameters.items():
        group = groups.get(id(parameter), {})
        root, state = gradients[name].double().abs(), states.get(name)
        if stated and state is not None:
            root = state.sqrt()
        eps = float(group.get("eps", 1e-8))
        gone = stated and state is None
        flat.append(((root + eps).rsqrt() * (0.0 if gone else 1.0)).reshape(-1))
    source = "the optimiser's state" if stated else "the squared gradient of the batch"
    return torch.cat(flat), source


def _groups(optimizer: Optimizer) -> dict[int, dict[str, Any]]:
    """Return the group of each parameter that an optimiser holds, by its identity."""
    return {id(p): group for group in optimizer.param_groups for p in group["params"]}


def _squares(optimizer: Optimizer | None, parameter: Tensor) -> Tensor | None:
    """Return the mean squared gradient that Adam, RMSprop and variants keep."""
    if optimizer is None or parameter not in optimizer.state:
        return None
    state = optimizer.state[parameter]
    if "max_exp_avg_sq" in state:
        return _corrected(optimizer, parameter, state, "max_exp_avg_sq")
    if "exp_avg_sq" in state:
        return _corrected(optimizer, parameter, state, "exp_avg_sq")
    if "square_avg" in state:
        square = state["square_avg"].detach().double()
        mean = state.get("grad_avg")
        return square if mean is None else square - mean.detach().double().square()
    if "exp_inf" in state:  # of Adamax, a largest gradient
        return state["exp_inf"].detach().double().square()
    return state["sum"].detach().double() if "sum" in state else None


def _corrected(
    optimizer: Optimizer, parameter: Tensor, state: dict[str, Any], key: str
) -> Tensor:
    """Correct the bias of a running mean after few steps."""
    group = next(
        g for g in optimizer.param_groups if any(p is parameter for p in g["params"])
    )
    betas = group.get("betas", (0.9, 0.999))
    steps = float(state.get("step", 1))
    lacks = 1 - float(betas[1]) ** max(steps, 1)
    return state[key].detach().double() / lacks

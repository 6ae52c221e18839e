"""How an adaptive optimiser scales each parameter: from its state, or a first guess."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

Parameters = Mapping[str, Tensor]


def scales_of(
    optimiser: Optimizer | None, parameters: Parameters, gradients: Parameters
) -> tuple[Tensor, str]:
    r"""Return the diagonal of $P^{-1/2}$, and where it comes from.

    $P = \sqrt{v} + \epsilon$ with $v$ the running mean of squared gradients in the
    optimiser's state, or the squared gradient itself, as at a first step.

    Args:
        optimiser: The optimiser in use.
        parameters: In the order of the Hessian's columns.
        gradients: Of the loss, by the same names.
    """
    states = [_squares(optimiser, p) for p in parameters.values()]
    eps = _eps(optimiser)
    if optimiser is not None and all(state is not None for state in states):
        roots = [state.sqrt() for state in states if state is not None]
        source = "the optimiser's state"
    else:
        roots = [gradients[name].double().abs() for name in parameters]
        source = "the squared gradient of the batch"
    flat = torch.cat([(root.double() + eps).rsqrt().reshape(-1) for root in roots])
    return flat, source


def _eps(optimiser: Optimizer | None) -> float:
    groups: list[dict[str, Any]] = [] if optimiser is None else optimiser.param_groups
    return max((float(g["eps"]) for g in groups if "eps" in g), default=1e-8)


def _squares(optimiser: Optimizer | None, parameter: Tensor) -> Tensor | None:
    """Return the mean squared gradient of Adam, RMSprop and their kin."""
    if optimiser is None or parameter not in optimiser.state:
        return None
    state = optimiser.state[parameter]
    if "max_exp_avg_sq" in state:
        return _corrected(optimiser, parameter, state, "max_exp_avg_sq")
    if "exp_avg_sq" in state:
        return _corrected(optimiser, parameter, state, "exp_avg_sq")
    if "square_avg" in state:
        square = state["square_avg"].detach().double()
        mean = state.get("grad_avg")
        return square if mean is None else square - mean.detach().double().square()
    if "exp_inf" in state:  # of Adamax, a largest gradient
        return state["exp_inf"].detach().double().square()
    return state["sum"].detach().double() if "sum" in state else None


def _corrected(
    optimiser: Optimizer, parameter: Tensor, state: dict[str, Any], key: str
) -> Tensor:
    """Divide by what a running mean lacks after few steps."""
    group = next(
        g for g in optimiser.param_groups if any(p is parameter for p in g["params"])
    )
    betas = group.get("betas", (0.9, 0.999))
    steps = float(state.get("step", 1))
    lacks = 1 - float(betas[1]) ** max(steps, 1)
    return state[key].detach().double() / lacks

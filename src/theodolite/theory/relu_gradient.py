r"""Loss and gradient of piecewise linear n-shortcut networks, in NumPy.

Notation: $a_k$ the input of layer $k$, $\delta_k$ the error carried back to its
output; the gradient of matrix $k$ is the mean of $\delta_k a_k^\top$ over samples.
"""

import numpy as np

from theodolite.core import ConfigError, Numbers, ShortcutBlueprint, require_kind
from theodolite.theory.relu_hessian import checked_arrays


def relu_gradient(
    blueprint: ShortcutBlueprint, weights: Numbers, x: Numbers, y: Numbers
) -> tuple[float, np.ndarray]:
    r"""Return the half mean square and its gradient, shape (depth, width, width).

    Assumes: a ``ShortcutBlueprint`` with identity before and after units, identity or
    ReLU between their matrices, no biases; the slope of ReLU at 0 is 0.

    Args:
        blueprint: Architecture.
        weights: All matrices in the order applied, shape (depth, width, width).
        x: Inputs, shape (m, width).
        y: Targets, shape (m, width).

    Example:
        >>> plan = ShortcutBlueprint(width=1, depth=2, mid="relu")
        >>> loss, slope = relu_gradient(plan, np.ones((2, 1, 1)), np.ones((1, 1)),
        ...                             np.zeros((1, 1)))
        >>> loss, slope.ravel()
        (2.0, array([2., 2.]))
    """
    _check(blueprint)
    weights, x, y = checked_arrays(blueprint, weights, x, y)
    n, relu = blueprint.shortcut, blueprint.mid == "relu"
    inputs, gates, state, entrance = [], [], x, x
    for layer, weight in enumerate(weights):
        if layer % n == 0:
            entrance = state
        gate = np.ones_like(state)
        if relu and layer % n:
            gate = (state > 0).astype(state.dtype)
            state = state * gate
        inputs.append(state)
        gates.append(gate)
        state = state @ weight.T
        if layer % n == n - 1 and blueprint.skip:
            state = state + entrance
    error = state - y
    loss = float(np.square(error).sum()) / (2 * len(x))
    gradient, back = np.empty_like(weights), error / len(x)
    carried = back
    for layer in reversed(range(len(weights))):
        if layer % n == n - 1:
            carried = back
        gradient[layer] = back.T @ inputs[layer]
        back = (back @ weights[layer]) * gates[layer]
        if layer % n == 0 and blueprint.skip:
            back = back + carried
    return loss, gradient


def _check(blueprint: ShortcutBlueprint) -> None:
    require_kind(blueprint, ShortcutBlueprint, task="relu_gradient")
    outside = (blueprint.pre, blueprint.post) == ("identity", "identity")
    if not outside or blueprint.mid not in ("identity", "relu") or blueprint.bias:
        raise ConfigError(
            f"activations ({blueprint.pre}, {blueprint.mid}, {blueprint.post}) and "
            f"bias={blueprint.bias}: this gradient is for ReLU or identity between the "
            "matrices of a unit and no biases; measure others with instruments"
        )

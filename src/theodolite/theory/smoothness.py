r"""Global smoothness of a loss: a Lipschitz constant of its gradient."""

from theodolite.core import Numbers, SystemBlueprint
from theodolite.theory.cost_bounds import CostName, cost_bounds
from theodolite.theory.layer_bounds import extent_of
from theodolite.theory.system_bounds import Balls, system_bounds


def smoothness_bound(
    blueprint: SystemBlueprint,
    data: Numbers,
    cost: CostName,
    *,
    target_norm: float = 0.0,
    balls: Balls | None = None,
) -> float:
    r"""Return $\beta$, a Lipschitz constant of the gradient of a system's loss.

    Gradient descent with a step below $2/\beta$ lowers the loss at every step.

    Assumes: a ``SystemBlueprint``, its parameters in the balls, all of parameter space
    by default, where the result is infinite unless every matrix is normalised.

    Args:
        blueprint: The system.
        data: Samples along the first axis.
        cost: Mean cost of the outputs.
        target_norm: Frobenius norm of the targets of the square cost.
        balls: Where the parameters of each layer lie.

    References:
        MacDonald et al. (2023), corollary 4.4.

    Example:
        >>> from theodolite.core import normalised_residual
        >>> plan = normalised_residual(inputs=3, widths=(2, 2))
        >>> round(smoothness_bound(plan, [[1.0, 0, 0], [0, 1.0, 0]], "logistic"), 4)
        2.6182
    """
    bounds = system_bounds(blueprint, extent_of(data), balls)
    costs = cost_bounds(cost, bounds.outputs, target_norm=target_norm)
    return bounds.smoothness(costs.gradient, costs.curvature)

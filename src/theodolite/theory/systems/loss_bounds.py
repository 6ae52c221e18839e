r"""Bounds of convex costs of a network's outputs, and of the whole loss.

Notation: $\gamma(Z) = \frac1N\sum_i c(z_i, y_i)$; $\mu$ its Polyak–Łojasiewicz
constant, $\|\nabla\gamma\|^2 \ge \mu(\gamma - \inf\gamma)$.
"""

import math
from dataclasses import dataclass
from typing import Literal

from theodolite.core import ConfigError, Numbers, SystemBlueprint, check_number

from .chain_bounds import Balls, system_bounds
from .single_layer_bounds import Extent, extent_of

CostName = Literal["cross_entropy", "square", "logistic"]


@dataclass(frozen=True, kw_only=True)
class CostBounds:
    r"""Bounds of a cost on a set of outputs.

    Attributes:
        gradient: Bound $g_1$ of $\|\nabla\gamma\|$.
        curvature: Bound $g_2$ of $\|\nabla^2\gamma\|$.
        polyak: $\mu$ on the set; 0 where none is known.
        floor: Lower bound of $\gamma$ on the set.
        why: Reason for an infinite gradient bound or $\mu = 0$; else empty.
    """

    gradient: float
    curvature: float
    polyak: float
    floor: float
    why: str = ""


def cost_bounds(
    cost: CostName, outputs: Extent, *, target_norm: float = 0.0
) -> CostBounds:
    r"""Return bounds of a cost and its derivatives on a set of outputs.

    ``cross_entropy`` of classes: $\|\nabla c\| \le \sqrt2$,
    $\|\nabla^2 c\| \le \frac12$, and
    $\|\nabla c\|^2 \ge \frac{K}{K-1}(1 - e^{-c})^2$, whose ratio to c is least at an
    end of the range of c. ``square`` is $c = \frac12\|z - y\|^2$, $\mu = 2/N$.
    ``logistic`` is the mean of $\log(1 + e^{-yz})$ over all numbers put out, with
    $y = \pm1$.

    Assumes: outputs in the extent; targets are classes, or of Frobenius norm
    ``target_norm`` altogether.

    References:
        MacDonald et al. (2023), corollary 4.4 and theorem 2.4.

    Example:
        >>> bounds = cost_bounds("cross_entropy", Extent(samples=2, shape=(3,)))
        >>> bounds.gradient, bounds.curvature
        (1.0, 0.25)
    """
    if len(outputs.shape) != 1:
        raise ConfigError(
            f"outputs of shape {outputs.shape} came to a cost of rows: flatten them"
        )
    check_number("target_norm", target_norm)
    n, classes = outputs.samples, outputs.shape[0]
    if cost == "square":
        gradient = (outputs.frobenius + target_norm) / n
        why = "outputs are unbounded, and so is their gap"
        why = "" if gradient < math.inf else why
        return CostBounds(
            gradient=gradient, curvature=1 / n, polyak=2 / n, floor=0.0, why=why
        )
    if cost == "logistic":
        count = n * classes
        low, high = _softplus(-outputs.entries), _softplus(outputs.entries)
        mu, why = _least_ratio(low, high, 1.0)
        return CostBounds(
            gradient=count**-0.5,
            curvature=1 / (4 * count),
            polyak=mu / count,
            floor=low,
            why=why,
        )
    if classes < 2:
        raise ConfigError("cross-entropy of one class is zero: pass two or more")
    gap = math.sqrt(2.0) * outputs.sample  # between two entries of a sample
    low = _softplus(math.log(classes - 1) - gap)
    high = _softplus(math.log(classes - 1) + gap)
    mu, why = _least_ratio(low, high, classes / (classes - 1))
    return CostBounds(
        gradient=math.sqrt(2 / n),
        curvature=1 / (2 * n),
        polyak=mu / n,
        floor=low,
        why=why,
    )


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
        target_norm: Frobenius norm of the targets, for the square cost.
        balls: Where the parameters of each layer lie; see ``system_bounds``.

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


def _least_ratio(low: float, high: float, factor: float) -> tuple[float, str]:
    """Return the least (1 - e^-c)²/c between two costs; it rises, then falls."""
    if not low > 0 or high == math.inf:
        return 0.0, "outputs may be so large that no part of the gradient is left"
    return factor * min(math.expm1(-c) ** 2 / c for c in (low, high)), ""


def _softplus(z: float) -> float:
    if z == math.inf:
        return z
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))

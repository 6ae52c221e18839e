r"""Which curvature descent stands, and that of a layer over normalised units."""

import math

from theodolite.core import ConfigError, as_numbers, as_whole


def stability_edge(rate: float, momentum: float = 0.0) -> float:
    r"""Largest curvature at which descent does not diverge, $2(1 + \mu)/\eta$.

    On a quadratic of curvature $\lambda$ descent with momentum is $w_{t+1} = (1 + \mu
    - \eta\lambda)\, w_t - \mu\, w_{t-1}$. Both roots of $z^2 - (1 + \mu -
    \eta\lambda)\, z + \mu$ lie within the unit circle while $\eta\lambda < 2(1 +
    \mu)$, beyond which one passes $-1$.

    Assumes: heavy-ball momentum, as ``torch.optim.SGD`` has it without dampening and
    without Nesterov's step; one gradient of the whole loss a step.

    Args:
        rate: $\eta$, positive.
        momentum: $\mu$, from 0 to below 1.

    References:
        Polyak (1964), Some methods of speeding up the convergence of iteration methods;
        Cohen et al. (2021), Gradient descent on neural networks typically occurs at the
        edge of stability.

    Example:
        >>> stability_edge(0.1), round(stability_edge(0.1, momentum=0.9), 9)
        (20.0, 38.0)
    """
    step, kept = (
        float(as_numbers("rate", rate)),
        float(as_numbers("momentum", momentum)),
    )
    if step <= 0:
        raise ConfigError(f"rate is {step}: pass a positive one")
    if not 0 <= kept < 1:
        raise ConfigError(f"momentum is {kept}: pass a number from 0 to below 1")
    return 2 * (1 + kept) / step


def rectified_sharpness(features: int) -> float:
    r"""Largest curvature of the mean square loss in the last layer.

    Its Hessian is $2\,E[h h^\top]$. Rectified standard normal units have
    $E[h_i^2] = \frac12$ and, independent, $E[h_i h_j] = \frac{1}{2\pi}$, so that
    $\lambda_{\max} = 1 + (n - 1)/\pi$, along the vector of ones. Descent of rate
    $\eta$ and momentum $\mu$ diverges where $\eta\lambda_{\max} > 2(1 + \mu)$, however
    large the weights below are: batch normalisation hides them.

    Assumes: one output; units independent and normal before the rectifier. Units that
    agree with each other curve more.

    Args:
        features: Units that the layer reads, $n$.

    Example:
        >>> round(rectified_sharpness(256), 3)
        82.169
    """
    n = as_whole("features", features, 1)
    return 1 + (n - 1) / math.pi

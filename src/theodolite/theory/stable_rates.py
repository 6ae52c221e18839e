r"""Curvature of the square loss in a linear layer over rectified, normalised units."""

import math

from theodolite.core import as_whole


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

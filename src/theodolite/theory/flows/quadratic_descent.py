r"""Gradient descent on the quadratic model of a loss, after any number of steps.

Notation: $L(w) \approx L_0 + g^\top w + \frac12 w^\top H w$, rate $\eta$, $T$ steps.
"""

import math
from dataclasses import dataclass

import numpy as np

from theodolite.core import ConfigError, Numbers, as_integer, as_numbers


def stability_edge(rate: float, momentum: float = 0.0) -> float:
    r"""Largest curvature at which descent does not diverge, $2(1 + \mu)/\eta$.

    On a quadratic of curvature $\lambda$ descent with momentum is $w_{t+1} = (1 + \mu
    - \eta\lambda)\, w_t - \mu\, w_{t-1}$. Both roots of $z^2 - (1 + \mu -
    \eta\lambda)\, z + \mu$ lie within the unit circle while $\eta\lambda < 2(1 +
    \mu)$, beyond which one passes $-1$.

    Assumes: heavy-ball momentum, as ``torch.optim.SGD`` has it without dampening and
    without Nesterov's step; one gradient of the whole loss per step.

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
    step = float(as_numbers("rate", rate))
    kept = float(as_numbers("momentum", momentum))
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
    n = as_integer("features", features, 1)
    return 1 + (n - 1) / math.pi


# Lanczos steps: extremes of these spectra and the weight that the gradient has on
# them settle well before; the tests compare with all eigenvalues.
_STEPS = 120
# Losses are compared with multiples of the first, far below this.
_LARGEST = 1e300
_HUGE = 600.0  # exponents up to here cannot overflow


@dataclass(frozen=True, eq=False)
class GradientSpectrum:
    r"""Where the gradient lies in the spectrum of the Hessian.

    Attributes:
        nodes: Eigenvalues, or the nodes of the Gauss quadrature for them.
        weights: Squared components of the gradient along them.
        largest: $\lambda_{\max}$ of the Hessian itself.
    """

    nodes: np.ndarray
    weights: np.ndarray
    largest: float

    def change(self, rate: float, steps: int) -> float:
        r"""Change of the model's loss after ``steps`` steps at one rate.

        $\sum_i \frac{g_i^2}{2\lambda_i}\bigl((1-\eta\lambda_i)^{2T} - 1\bigr)$, its
        limit $-\eta T g_i^2$ where $\lambda_i \to 0$. Beyond $10^{300}$ it is that
        number, with the sign of the direction that outgrows the others.
        """
        if not rate > 0 or steps < 0:
            raise ConfigError(
                f"{steps} steps at rate {rate}: pass a positive rate, and steps from "
                "0 up"
            )
        rate, steps = float(rate), as_integer("steps", steps, 0)
        lam = self.nodes
        small = np.abs(lam) * rate * steps < 1e-8
        safe = np.where(small, 1.0, lam)
        with np.errstate(divide="ignore"):
            power = 2 * steps * np.log(np.abs(1 - rate * safe))
            size = np.where(small, -np.inf, power + np.log(self.weights / 2))
        size = size - np.log(np.abs(safe))
        top = int(np.argmax(size))
        if size[top] > np.log(_LARGEST):
            return float(np.copysign(_LARGEST, lam[top]))
        # A huge power on a tiny weight: only their product is within range.
        huge = power > _HUGE
        growth = np.expm1(np.minimum(power, _HUGE)) / (2 * safe)
        terms = self.weights * np.where(small, -rate * steps, growth)
        terms[huge] = np.sign(safe[huge]) * np.exp(size[huge])
        return float(np.sum(terms))


def gradient_spectrum(hessian: Numbers, gradient: Numbers) -> GradientSpectrum:
    """Return the spectral measure of a gradient, by Lanczos from the gradient.

    Assumes: a symmetric matrix; with as many Lanczos steps as the gradient has
    distinct eigenvalues the measure is exact, else it matches the first moments.

    References:
        Golub & Meurant (2010), Matrices, Moments and Quadrature.

    Example:
        >>> spectrum = gradient_spectrum(np.diag([1.0, 3.0]), np.array([1.0, 1.0]))
        >>> spectrum.nodes.round(12), spectrum.largest
        (array([1., 3.]), 3.0)
    """
    gradient = as_numbers("gradient", gradient, "parameters")
    n = gradient.size
    if not n:
        raise ConfigError(
            "gradient has no entries: pass that of the loss with respect to all weights"
        )
    hessian = as_numbers("hessian", hessian, "parameters", "parameters")
    if hessian.shape != (n, n):
        raise ConfigError(
            f"a Hessian of shape {hessian.shape} and a gradient of {n} entries: pass "
            "those of the same weights"
        )
    from scipy.sparse.linalg import eigsh

    if n <= 2 * _STEPS:
        values, vectors = np.linalg.eigh(hessian)
        parts = (vectors.T @ gradient) ** 2
        return GradientSpectrum(values, parts, float(values[-1]))
    start = np.cos(np.arange(n))  # any fixed vector with no symmetry
    largest = float(eigsh(hessian, k=1, which="LA", v0=start)[0][0])
    nodes, weights = _lanczos(hessian, gradient)
    return GradientSpectrum(nodes, weights, largest)


def _lanczos(matrix: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the quadrature's nodes and weights, re-orthogonalised twice a step."""
    norm = float(np.linalg.norm(start))
    if norm == 0:
        return np.zeros(1), np.zeros(1)
    basis = np.empty((_STEPS, start.size))
    diagonal, beside = np.zeros(_STEPS), np.zeros(_STEPS)
    basis[0], used = start / norm, _STEPS
    scale = 0.0
    for k in range(_STEPS):
        new = matrix @ basis[k]
        diagonal[k] = new @ basis[k]
        scale = max(scale, float(np.linalg.norm(new)))
        for _ in range(2):
            new -= basis[: k + 1].T @ (basis[: k + 1] @ new)
        beside[k] = np.linalg.norm(new)
        if k + 1 == _STEPS or beside[k] <= 1e-13 * scale:
            used = k + 1
            break
        basis[k + 1] = new / beside[k]
    from scipy.linalg import eigh_tridiagonal

    nodes, vectors = eigh_tridiagonal(diagonal[:used], beside[: used - 1])
    return nodes, norm**2 * vectors[0] ** 2

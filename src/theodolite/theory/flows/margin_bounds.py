r"""Margins of binary classifiers and bounds on their error.

Normalised networks are those whose Frobenius norms are at most 1; $\rho$ times them are
those of norm product $\rho$, so that their Rademacher complexity is $\rho$ times as
large.
"""

import itertools

import numpy as np
from scipy.optimize import nnls

from theodolite.core import ConfigError, Numbers, as_integer, as_numbers, check_number

_MOST_SIGNS = 16
_TURN = 2 * np.pi


def frobenius_complexity(inputs: Numbers, layers: int) -> float:
    r"""Return a bound on the Rademacher complexity of normalised ReLU networks.

    $(\sqrt{2 L \ln 2} + 1)\sqrt{\sum_n \|x_n\|^2}/N$.

    References:
        Golowich, Rakhlin & Shamir (2018), Size-independent sample complexity of neural
        networks, theorem 1.

    Example:
        >>> round(frobenius_complexity([[1.0, 0.0], [0.0, 1.0]], 2), 6)
        1.884517
    """
    x = as_numbers("inputs", inputs, "samples", "width")
    depth = as_integer("layers", layers, 1)
    factor = np.sqrt(2 * depth * np.log(2)) + 1
    return float(factor * np.linalg.norm(x) / len(x))


def two_layer_complexity(inputs: Numbers) -> float:
    r"""Return the exact complexity of normalised two-layer ReLU networks of the plane.

    The best network has one unit, so that for signs $\sigma$ the supremum is
    $\max_{\|v\| = 1} |\sum_n \sigma_n (v^T x_n)_+|$: on each arc between kinks a
    cosine, whose maximum is known. All $2^N$ signs are listed.

    Args:
        inputs: Up to 16 points of the plane.

    Example:
        >>> round(two_layer_complexity([[1.0, 0.0], [0.0, 1.0]]), 6)
        0.603553
    """
    x = as_numbers("inputs", inputs, "samples", 2)
    if not 1 <= len(x) <= _MOST_SIGNS:
        raise ConfigError(
            f"{len(x)} inputs have 2**{len(x)} signs: pass 1 to {_MOST_SIGNS} points"
        )
    angles = np.arctan2(x[:, 1], x[:, 0])
    ends = np.sort(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]) % _TURN)
    ends = np.append(ends, ends[0] + _TURN)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(x))))
    best = np.zeros(len(signs))
    for low, high in itertools.pairwise(ends):
        middle = (low + high) / 2
        active = x @ [np.cos(middle), np.sin(middle)] > 0
        pull = signs[:, active] @ x[active]
        best = np.maximum(best, _largest_on_arc(pull, low, high))
    return float(best.mean() / len(x))


def margin_bound(
    empirical: float, complexity: float, *, gamma: float, samples: int, delta: float
) -> float:
    r"""Return $\hat L_\gamma + \frac{2}{\gamma} R + 3\sqrt{\ln(2/\delta)/2N}$.

    Example:
        >>> round(margin_bound(0.0, 0.1, gamma=1.0, samples=1000, delta=0.05), 6)
        0.328841
    """
    if not 0 < delta < 1 or not gamma > 0:
        raise ConfigError(
            f"delta is {delta} and gamma {gamma}: pass delta between 0 and 1 and a "
            "positive gamma"
        )
    check_number("empirical", empirical)
    check_number("complexity", complexity)
    rest = 3 * np.sqrt(np.log(2 / delta) / (2 * as_integer("samples", samples, 1)))
    return float(empirical + 2 * complexity / gamma + rest)


def least_norm_classifier(inputs: Numbers, labels: Numbers) -> np.ndarray:
    r"""Return the shortest $w$ with $y_n w^T x_n \ge 1$, the hard-margin classifier.

    By duality $w = r/\|r\|^2$ with $r$ the point of the convex hull of $y_n x_n$ that
    is nearest to the origin, found as a non-negative least-squares problem.

    Example:
        >>> least_norm_classifier([[2.0, 0.0], [0.0, 1.0]], [1, 1]).round(6)
        array([0.5, 1. ])
    """
    x = as_numbers("inputs", inputs, "samples", "width")
    y = as_numbers("labels", labels, len(x))
    # min |Z^T a - 0|^2 + (sum a - 1)^2 over a >= 0 points along the nearest point.
    rows = np.vstack([(y[:, None] * x).T, np.ones(len(x))])
    target = np.zeros(len(rows))
    target[-1] = 1.0
    weights, _ = nnls(rows, target)
    nearest = (y[:, None] * x).T @ weights
    reach = float(np.min(y * (x @ nearest)))
    if reach <= 1e-12:
        raise ConfigError(
            f"the {len(x)} samples are not separated by any direction: pass separable "
            "ones"
        )
    return nearest / reach


def _largest_on_arc(pull: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the largest magnitude of v·pull for unit v on an arc."""
    sizes = np.linalg.norm(pull, axis=1)
    ends = np.array([[np.cos(t), np.sin(t)] for t in (low, high)])
    best = np.abs(pull @ ends.T).max(axis=1)
    for side in (0.0, np.pi):
        angle = np.arctan2(pull[:, 1], pull[:, 0]) + side
        inside = (angle - low) % _TURN <= high - low
        best = np.where(inside, sizes, best)
    return best

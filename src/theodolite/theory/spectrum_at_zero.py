r"""What the closed form at zero says of the spectrum, never building the matrix."""

from dataclasses import dataclass

import numpy as np

from theodolite.core import ConfigError, Numbers, ShortcutBlueprint, as_numbers
from theodolite.theory.activations import activation
from theodolite.theory.hessian_at_zero import (
    covered_samples,
    data_matrix,
    hessian_at_zero,
    unit_blocks,
)
from theodolite.theory.moments import paired_samples
from theodolite.theory.toeplitz import ToeplitzSpectrum


@dataclass(frozen=True)
class Conditioning:
    r"""Extremes and index of a spectrum.

    Attributes:
        largest: $|\lambda|_{\max}$.
        small: $|\lambda|_{(q)}$, linear between order statistics.
        ratio: Their quotient; infinite where ``small`` is 0, NaN where both are.
        index: Fraction of negative eigenvalues.
    """

    largest: float
    small: float
    ratio: float
    index: float


def eigenvalues_at_zero(
    blueprint: ShortcutBlueprint, x: Numbers, y: Numbers
) -> np.ndarray:
    r"""All eigenvalues of the Hessian at zero, ascending.

    $n = 2$: $\pm$ each singular value of the d×d (with biases d×(d+1)) data matrix,
    $d R$ times each sign, and zeros where biases leave directions flat. $n \ge 3$:
    zeros. $n = 1$ goes through the dense matrix: :func:`conditioning_at_zero` does not.

    Assumes: as ``hessian_at_zero``.

    References:
        Li et al. (2016), Demystifying ResNet, Eq 26.

    Example:
        >>> x = np.array([[1.0, 0.0], [0.5, -1.0], [-1.0, 2.0]])
        >>> y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        >>> eigenvalues_at_zero(ShortcutBlueprint(width=2, depth=2), x, y).round(4)
        array([-1.5075, -1.5075, -0.1106, -0.1106,  0.1106,  0.1106,  1.5075,
                1.5075])
    """
    x, y = covered_samples(blueprint, x, y)
    if blueprint.shortcut == 1:
        return np.linalg.eigvalsh(hessian_at_zero(blueprint, x, y))
    copies = blueprint.width * blueprint.units
    single = np.linalg.svd(data_matrix(blueprint, x, y), compute_uv=False)
    found = np.repeat(single, copies)
    flat = np.zeros(blueprint.parameters - 2 * found.size)
    return np.sort(np.concatenate([-found, flat, found]))


def conditioning_at_zero(
    blueprint: ShortcutBlueprint, x: Numbers, y: Numbers, *, quantile: float = 0.1
) -> Conditioning:
    r"""Percentile condition number and index of the Hessian at zero.

    Cost: an SVD of a d×d matrix for $n = 2$, whatever the depth; for $n = 1$,
    $R/2$ eigenproblems of size d² and a bisection on the inertia.

    Assumes: as ``hessian_at_zero``.

    Args:
        blueprint: Architecture.
        x: Inputs, shape (m, width).
        y: Targets, shape (m, width).
        quantile: $q$ of $|\lambda|_{(q)}$.

    References:
        Li et al. (2016), Demystifying ResNet, theorem 2 and appendix B.
    """
    if not 0 <= quantile < 1:
        raise ConfigError(f"quantile {quantile} is not in [0, 1): try 0.1")
    quantile = float(quantile)
    x, y = covered_samples(blueprint, x, y)
    if blueprint.shortcut == 1:
        a, b = unit_blocks(blueprint, x, y)
        spectrum = ToeplitzSpectrum(a, b, blueprint.units)
        largest = spectrum.largest()
        small = spectrum.magnitude_quantile(quantile)
        return Conditioning(largest, small, _ratio(largest, small), spectrum.index())
    values = eigenvalues_at_zero(blueprint, x, y)
    size = np.abs(values)
    largest, small = float(size.max()), float(np.quantile(size, quantile))
    return Conditioning(
        largest, small, _ratio(largest, small), float(np.mean(values < 0))
    )


def _ratio(largest: float, small: float) -> float:
    if small > 0:
        return largest / small
    return float("inf") if largest > 0 else float("nan")


def relu_spectrum_near_zero(
    first_weights: Numbers, x: Numbers, y: Numbers
) -> np.ndarray:
    r"""Eigenvalues of a 2-shortcut ReLU-mid network at small non-zero weights.

    To leading order the Hessian couples row $w_j$ of a unit's first matrix to column
    $j$ of its second through $M(w_j) = \frac1m\sum 1[w_j \cdot x > 0]\,(x - y)x^\top$,
    so the spectrum is $\pm$ the singular values of these half-space moments. Since
    $M(w) + M(-w) = M$, the ½M of the smooth formula is only their average over signs.

    Assumes: half mean square loss, skip connections, $\sigma_{pre} = \sigma_{post}
    = id$, weights small enough that units do not move the signal.

    Args:
        first_weights: First matrix of each unit, shape (units, width, width).
        x: Inputs, shape (m, width).
        y: Targets, shape (m, width).

    Returns:
        Eigenvalues, ascending, shape (2 · units · width²,).

    References:
        Corrects the reading of Li et al. (2016), Demystifying ResNet, Eq 9 with
        assumption 3 for ReLU.

    Example:
        >>> x = np.array([[1.0], [-1.0]])
        >>> relu_spectrum_near_zero(np.ones((1, 1, 1)), x, 0 * x)
        array([-0.5,  0.5])
    """
    x, y = paired_samples(x, y)
    d = x.shape[1]
    rows = as_numbers("first_weights", first_weights, "units", d, d).reshape(-1, d)
    slope = activation("relu").slope
    found = [
        np.linalg.svd(((x - y) * slope(x @ w)[:, None]).T @ x / len(x))[1] for w in rows
    ]
    positive = np.concatenate(found)
    return np.sort(np.concatenate([-positive, positive]))

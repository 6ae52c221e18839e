r"""Hessian of an n-shortcut network where every weight is zero, and its spectrum.

For the loss $L = \frac{1}{2m}\sum\|y - f(x)\|^2$ and one unit
$x \mapsto x + \sigma_{post}(W_n\,\sigma_{mid}(\cdots W_1\,\sigma_{pre}(x)))$ the map is
the identity at zero. Second derivatives are not zero for two matrices of one unit at
$n = 2$, for any two matrices at $n = 1$, and for none at $n \ge 3$.

Notation: $R$ units, $s = \sigma_{pre}(x)$, $c = \sigma_{mid}'(0)\sigma_{post}'(0)$,
$M = E[(x - y)s^\top]$; parameters in the order (unit, layer, column, row), a bias
following the matrix that it is added to.

Activations enter by their value, slope and curvature at zero. $\sigma'$, $\sigma''$:
first and second derivative.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from theodolite.core import (
    ConfigError,
    Numbers,
    Samples,
    ShortcutBlueprint,
    as_integer,
    as_numbers,
    parse_activation,
)

from .linear_network import paired_samples
from .toeplitz import ToeplitzSpectrum

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Activation:
    r"""An elementwise function.

    Attributes:
        value: $\sigma(z)$.
        slope: $\sigma'(z)$.
        at_zero: $\sigma(0)$.
        slope_at_zero: $\sigma'(0)$.
        curvature_at_zero: $\sigma''(0)$; None where it does not exist.

    Both functions take real numbers of any type and shape, and return float64.
    """

    value: Map
    slope: Map
    at_zero: float
    slope_at_zero: float
    curvature_at_zero: float | None

    def __post_init__(self) -> None:
        for name in ("value", "slope"):
            object.__setattr__(self, name, _gated(getattr(self, name)))


def activation(spec: str) -> Activation:
    r"""Return the activation of a name that blueprints use.

    For ReLU, $\sigma'(0)$ is $\tfrac12$: the slope of the least-squares line on any
    interval $[-\delta, \delta]$. The second derivative does not exist: the best
    quadratic on that interval has curvature $15/(16\delta)$.

    References:
        Li et al. (2016), Demystifying ResNet, assumption 3 and the remark after it.

    Example:
        >>> activation("relu").slope_at_zero
        0.5
    """
    name, coefficients = parse_activation(spec)
    if name == "polynomial":
        return _polynomial(coefficients)
    return _TABLE[name]


def _polynomial(coefficients: tuple[float, ...]) -> Activation:
    curve = np.polynomial.Polynomial([0.0, *coefficients])
    slope = curve.deriv()
    return Activation(curve, slope, 0.0, float(slope(0.0)), float(slope.deriv()(0.0)))


def _gated(curve: Map) -> Map:
    """Return a function that converts its argument to float64 first."""
    # Infinity and NaN pass: the network may have overflowed before.
    return lambda z: curve(as_numbers("z", z, ..., finite=False))


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(z / 2))


_TABLE = {
    "identity": Activation(lambda z: z, np.ones_like, 0.0, 1.0, 0.0),
    "relu": Activation(
        lambda z: np.maximum(z, 0.0), lambda z: (z > 0) * 1.0, 0.0, 0.5, None
    ),
    "tanh": Activation(np.tanh, lambda z: 1 - np.tanh(z) ** 2, 0.0, 1.0, 0.0),
    "symmetric_sigmoid": Activation(
        lambda z: np.tanh(z / 2),
        lambda z: 0.5 * (1 - np.tanh(z / 2) ** 2),
        0.0,
        0.5,
        0.0,
    ),
    "silu": Activation(
        lambda z: z * _sigmoid(z),
        lambda z: _sigmoid(z) * (1 + z * (1 - _sigmoid(z))),
        0.0,
        0.5,
        0.5,
    ),
    "exp": Activation(np.exp, np.exp, 1.0, 1.0, 1.0),
}


def commutation(width: int) -> np.ndarray:
    r"""Return $K$ with $K\,\mathrm{vec}(U) = \mathrm{vec}(U^\top)$.

    It is symmetric and orthogonal; the paper's $P$ of Eq 24.

    Assumes: square matrices and column-major vec.

    Example:
        >>> commutation(2) @ np.array([1, 2, 3, 4])
        array([1., 3., 2., 4.])
    """
    width = as_integer("width", width, 1)
    matrix = np.zeros((width * width, width * width))
    index = np.arange(width * width).reshape(width, width)
    matrix[index.ravel(), index.T.ravel()] = 1.0
    return matrix


def hessian_at_zero(blueprint: ShortcutBlueprint, x: Numbers, y: Numbers) -> np.ndarray:
    r"""Return the Hessian of the loss at zero weights, shape (parameters, parameters).

    $n = 2$: each unit has the blocks $A = c\,(I \otimes M)K$ and $A^\top$ off its
    diagonal, $K$ the commutation matrix; units do not interact. $n = 1$: $B$ on the
    diagonal, $A$ below and $A^\top$ above. $n \ge 3$: zero. A bias $b$ inside a unit
    couples to its last matrix alone, through $c\,E[x - y]$.

    Assumes: a ``ShortcutBlueprint`` with skip connections, half mean square loss,
    $\sigma_{mid}(0) = \sigma_{post}(0) = 0$. ReLU at mid or post counts with slope ½ at
    zero, which is a convention: ``relu_spectrum_near_zero`` has the spectrum at small
    weights.

    References:
        Li et al. (2016), Demystifying ResNet, theorem 2, Eqs 8–10 and 21–32, in the
        general form that also covers $\sigma_{pre}, \sigma_{post} \ne id$ at $n = 1$.

    Example:
        >>> x = np.array([[1.0, 0.0], [0.5, -1.0], [-1.0, 2.0]])
        >>> y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        >>> h = hessian_at_zero(ShortcutBlueprint(width=2, depth=4), x, y)
        >>> np.linalg.eigvalsh(h).max().round(10)
        np.float64(1.5074809355)
    """
    x, y = covered_samples(blueprint, x, y)
    if blueprint.shortcut == 1:
        a, b = unit_blocks(blueprint, x, y)
        return _toeplitz(a, b, blueprint.units)
    return _unit_diagonal(blueprint, x, y)


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
    zeros. $n = 1$ builds the dense matrix; :func:`conditioning_at_zero` does not.

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
    positive = np.repeat(single, copies)
    flat = np.zeros(blueprint.parameters - 2 * positive.size)
    return np.sort(np.concatenate([-positive, flat, positive]))


def conditioning_at_zero(
    blueprint: ShortcutBlueprint, x: Numbers, y: Numbers, *, quantile: float = 0.1
) -> Conditioning:
    r"""Return the condition $|\lambda|_{\max}/|\lambda|_{(q)}$ and the index at zero.

    Cost: an SVD of a d×d matrix for $n = 2$ at any depth; for $n = 1$,
    $R/2$ eigenproblems of size d² and a bisection on the inertia.

    Assumes: as ``hessian_at_zero``.

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
        largest, index = spectrum.largest(), spectrum.index()
        small = spectrum.magnitude_quantile(quantile)
    else:
        values = eigenvalues_at_zero(blueprint, x, y)
        size, index = np.abs(values), float(np.mean(values < 0))
        largest, small = float(size.max()), float(np.quantile(size, quantile))
    flat = float("inf") if largest > 0 else float("nan")
    ratio = largest / small if small > 0 else flat
    return Conditioning(largest, small, ratio, index)


def data_matrix(blueprint: ShortcutBlueprint, x: Numbers, y: Numbers) -> np.ndarray:
    r"""$c\,[M, E(x - y)]$: the matrix whose singular values are the spectrum.

    The last column is there only with biases, and $M$ only for $n = 2$.

    Assumes: as :func:`hessian_at_zero`, $n \ge 2$.
    """
    x, y = covered_samples(blueprint, x, y)
    s = activation(blueprint.pre).value(x)
    columns = [(x - y).T @ s / len(x)] if blueprint.shortcut == 2 else []
    if blueprint.bias:
        columns.append((x - y).mean(axis=0)[:, None])
    scale = (
        activation(blueprint.mid).slope_at_zero
        * activation(blueprint.post).slope_at_zero
    )
    if not columns:
        return np.zeros((blueprint.width, 0))
    return scale * np.concatenate(columns, axis=1)


def unit_blocks(
    blueprint: ShortcutBlueprint, x: Numbers, y: Numbers
) -> tuple[np.ndarray, np.ndarray]:
    r"""Blocks $A$ and $B$ of the Hessian at zero for $n = 1$.

    With $e = x - y$, $p_1 = \sigma_{post}'(0)$, $p_2 = \sigma_{post}''(0)$ and entries
    indexed by (column, row) pairs,

    $B = p_1^2\,\Sigma^{ss} \otimes I + p_2\,\delta_{i_1 i_2} E[e_{i_1} s_{j_1}
    s_{j_2}]$,

    $A = p_1^2\,\big(\Sigma^{ss} \otimes I + \delta_{j_1 i_2} E[e_{i_1}
    \sigma_{pre}'(x_{j_1}) s_{j_2}]\big)$.

    Assumes: as :func:`hessian_at_zero`; $\sigma_{post}''(0)$ exists.

    Returns:
        $A$ and $B$, each of shape (width², width²).

    References:
        Li et al. (2016), Demystifying ResNet, Eqs 27–32, which print the case
        $\sigma_{pre} = \sigma_{post} = id$ only.
    """
    x, y = covered_samples(blueprint, x, y)
    pre, post = activation(blueprint.pre), activation(blueprint.post)
    if post.curvature_at_zero is None:
        raise ConfigError(
            f"post activation {blueprint.post!r} has no second derivative at zero, "
            "which a 1-shortcut network needs: choose a smooth one such as 'tanh'"
        )
    m, d = x.shape
    s, e = pre.value(x), x - y
    eye = np.eye(d)
    common = post.slope_at_zero**2 * np.einsum("ab,ij->aibj", s.T @ s / m, eye)
    curved = np.einsum("mi,ma,mb->iab", e, s, s, optimize=True) / m
    b = common + post.curvature_at_zero * np.einsum("iab,ij->aibj", curved, eye)
    crossed = np.einsum("mi,ma,mb->iab", e, pre.slope(x), s, optimize=True) / m
    a = common + post.slope_at_zero**2 * np.einsum("iab,aj->aibj", crossed, eye)
    return a.reshape(d * d, d * d), b.reshape(d * d, d * d)


def covered_samples(
    blueprint: ShortcutBlueprint, x: Numbers, y: Numbers
) -> tuple[Samples, Samples]:
    """Return samples as float64, or raise where the closed form does not apply."""
    x, y = paired_samples(x, y)
    if x.shape[1] != blueprint.width:
        raise ConfigError(
            f"data of width {x.shape[1]} for a network of width {blueprint.width}: "
            "project the data, for instance by whitening to that many components"
        )
    if not blueprint.skip:
        raise ConfigError(
            "a plain network was given, and the closed form at zero wants skip "
            "connections: set skip=True, or use linear_hessian at given weights"
        )
    for position in ("mid", "post"):
        name = getattr(blueprint, position)
        if activation(name).at_zero != 0:
            raise ConfigError(
                f"{position} activation {name!r} is not 0 at 0, as the closed form "
                "assumes: choose one that is, such as 'tanh'"
            )
    return x, y


def _toeplitz(a: np.ndarray, b: np.ndarray, units: int) -> np.ndarray:
    below = np.tri(units, k=-1)
    return np.kron(np.eye(units), b) + np.kron(below, a) + np.kron(below.T, a.T)


def _unit_diagonal(blueprint: ShortcutBlueprint, x: Samples, y: Samples) -> np.ndarray:
    """Assemble the block-diagonal Hessian of n ≥ 2, unit by unit."""
    d, n = blueprint.width, blueprint.shortcut
    size = n * d * d + (n - 1) * d * blueprint.bias
    unit = np.zeros((size, size))
    # Row of the last matrix, entry (column j, row i), meets the first matrix' entry
    # (column k, row j) with value data[i, k], and the last bias' entry j with the
    # extra column of data: the signal passes through hidden coordinate j alone.
    data = data_matrix(blueprint, x, y)
    last = size - d * d
    for j in range(d):
        rows = last + j * d + np.arange(d)
        columns = np.arange(d) * d + j if n == 2 else np.zeros(0, dtype=int)
        if blueprint.bias:
            columns = np.append(columns, last - d + j)
        unit[np.ix_(rows, columns)] = data
    return np.kron(np.eye(blueprint.units), unit + unit.T)

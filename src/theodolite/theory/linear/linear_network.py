r"""Loss, gradient and Hessian of deep linear n-shortcut networks, at any weights.

They depend on the data only through its second moments, so their cost does not grow
with the number of samples.

Notation: $\Sigma^{XX} = \frac1m\sum x x^\top$, $\Sigma^{YX} = \frac1m\sum y x^\top$,
$\Sigma^{YY} = \frac1m\sum y y^\top$; samples are rows of the arrays. $D_r$ the map of
unit $r$ ($I + \prod_l W^{r,l}$, or the bare product without skip); for layer $k$,
$P_k$ the product of all that follows it and $Q_k$ of all that precedes it, bare
matrices inside its own unit and $D$'s outside; $S_{kl}$ the product strictly between
layers $l$ and $k$; $E = W\Sigma^{XX} - \Sigma^{YX}$. Weights have shape (depth, width,
width), in the order applied.
"""

from dataclasses import dataclass

import numpy as np

from theodolite.core import (
    ConfigError,
    Numbers,
    Samples,
    ShortcutBlueprint,
    Square,
    as_numbers,
    convert_fields,
)


@dataclass(frozen=True, eq=False)
class Moments:
    r"""Second moments of inputs and targets.

    Attributes:
        xx: $\Sigma^{XX}$.
        yx: $\Sigma^{YX}$.
        yy: $\Sigma^{YY}$.
    """

    xx: Square
    yx: Square
    yy: Square

    def __post_init__(self) -> None:
        convert_fields(self, xx=("width", "width"))
        width = self.xx.shape[0]
        convert_fields(self, **dict.fromkeys(("xx", "yx", "yy"), (width, width)))

    @property
    def gap(self) -> Square:
        r"""$M = \Sigma^{XX} - \Sigma^{YX}$, the loss gradient at the identity."""
        return self.xx - self.yx

    @property
    def width(self) -> int:
        """Dimension of inputs and targets."""
        return self.xx.shape[0]

    def optimal_loss(self) -> float:
        r"""Least half mean square over all linear maps.

        $\frac12(\mathrm{tr}\,\Sigma^{YY} -
        \mathrm{tr}\,\Sigma^{YX}(\Sigma^{XX})^{+}\Sigma^{XY})$.
        """
        explained = self.yx @ np.linalg.pinv(self.xx, hermitian=True) @ self.yx.T
        return 0.5 * float(np.trace(self.yy) - np.trace(explained))


def moments(x: Numbers, y: Numbers) -> Moments:
    r"""Return the second moments of a dataset.

    Assumes: one sample per row; nothing is centred.

    References:
        Li et al. (2016), Demystifying ResNet, theorem 2.

    Example:
        >>> x = np.array([[1.0, 0.0], [0.5, -1.0], [-1.0, 2.0]])
        >>> y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        >>> np.linalg.svd(moments(x, y).gap)[1].round(10)
        array([1.50748094, 0.11055972])
    """
    x, y = paired_samples(x, y)
    m = len(x)
    return Moments(x.T @ x / m, y.T @ x / m, y.T @ y / m)


def paired_samples(x: Numbers, y: Numbers) -> tuple[Samples, Samples]:
    """Return inputs and targets as float64 arrays of one shape, or raise."""
    x = as_numbers("x", x, "samples", "width")
    y = as_numbers("y", y, "samples", "width")
    if x.shape != y.shape or len(x) == 0:
        raise ConfigError(
            f"inputs of shape {x.shape} and targets of shape {y.shape}: a network of "
            "constant width wants two arrays of equal shape (samples, width)"
        )
    return x, y


def linear_loss(
    blueprint: ShortcutBlueprint, weights: Numbers, moments: Moments
) -> float:
    r"""Half mean square of a deep linear network.

    $\frac12[\mathrm{tr}\,W\Sigma^{XX}W^\top - 2\,\mathrm{tr}\,W(\Sigma^{YX})^\top +
    \mathrm{tr}\,\Sigma^{YY}]$.

    Assumes: a ``ShortcutBlueprint`` with identity activations and no biases.
    """
    w = _products(blueprint, weights, moments).whole
    return 0.5 * float(
        np.sum((w @ moments.xx) * w) - 2 * np.sum(w * moments.yx) + np.trace(moments.yy)
    )


def linear_gradient(
    blueprint: ShortcutBlueprint, weights: Numbers, moments: Moments
) -> np.ndarray:
    r"""Return the gradient $P_k^\top E Q_k^\top$, shape (depth, width, width).

    Assumes: a ``ShortcutBlueprint`` with identity activations and no biases.
    """
    parts = _products(blueprint, weights, moments)
    error = parts.whole @ moments.xx - moments.yx
    return np.swapaxes(parts.after, 1, 2) @ error @ np.swapaxes(parts.before, 1, 2)


def linear_hessian(
    blueprint: ShortcutBlueprint, weights: Numbers, moments: Moments
) -> np.ndarray:
    r"""Exact Hessian of a deep linear network, shape (depth·width², same).

    $H_{kl} = (Q_k\Sigma^{XX}Q_l^\top) \otimes (P_k^\top P_l) + (S_{kl} \otimes
    P_k^\top E Q_l^\top)K$ for $k > l$, $K$ the commutation matrix, and the first term
    alone for $k = l$. Filling costs $O(L^2 d^4)$ for $L$ layers.

    Assumes: a ``ShortcutBlueprint`` with identity activations and no biases; parameters
    in the order (layer, column, row).

    References:
        Bishop (1992), Exact calculation of the Hessian matrix for the multilayer
        perceptron, specialised to linear units with skips.

    Example:
        >>> x = np.array([[1.0, 0.0], [0.5, -1.0], [-1.0, 2.0]])
        >>> y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        >>> plan = ShortcutBlueprint(width=2, depth=1, shortcut=1)
        >>> h = linear_hessian(plan, np.zeros((1, 2, 2)), moments(x, y))
        >>> np.linalg.eigvalsh(h).round(10)
        array([0.25727398, 0.25727398, 2.15939268, 2.15939268])
    """
    parts = _products(blueprint, weights, moments)
    between = _between(blueprint, parts.weights, parts.units)
    after, before = parts.after, parts.before
    depth, d = blueprint.depth, blueprint.width
    error = parts.whole @ moments.xx - moments.yx
    hessian = np.empty((depth, d, d, depth, d, d))
    for k in range(depth):
        # Rows of layer k against all layers up to it, entries (column, row).
        left = before[k] @ moments.xx @ np.swapaxes(before[: k + 1], 1, 2)
        right = after[k].T @ after[: k + 1]
        block = np.einsum("lab,lij->ailbj", left, right)
        if k:
            pull = after[k].T @ error @ np.swapaxes(before[:k], 1, 2)
            block[:, :, :k] += np.einsum("laj,lib->ailbj", between[k, :k], pull)
        hessian[k, :, :, : k + 1] = block
        hessian[:k, :, :, k] = block[:, :, :k].transpose(2, 3, 4, 0, 1)
    size = depth * d * d
    return hessian.reshape(size, size)


@dataclass(frozen=True, eq=False)
class _Products:
    weights: np.ndarray
    whole: np.ndarray
    units: np.ndarray
    before: np.ndarray
    after: np.ndarray


def _products(
    blueprint: ShortcutBlueprint, weights: Numbers, moments: Moments
) -> _Products:
    """Return W, the unit maps D, and P and Q of every layer."""
    weights = _checked(blueprint, weights, moments)
    n, d = blueprint.shortcut, blueprint.width
    eye = np.eye(d)
    before, after = np.empty_like(weights), np.empty_like(weights)
    units = np.empty((blueprint.units, d, d))
    whole = eye
    for r in range(blueprint.units):
        inner = eye
        for layer in range(r * n, (r + 1) * n):
            before[layer] = inner @ whole
            inner = weights[layer] @ inner
        units[r] = inner + eye if blueprint.skip else inner
        whole = units[r] @ whole
    rest = eye
    for r in reversed(range(blueprint.units)):
        inner = eye
        for layer in reversed(range(r * n, (r + 1) * n)):
            after[layer] = rest @ inner
            inner = inner @ weights[layer]
        rest = rest @ units[r]
    return _Products(weights, whole, units, before, after)


def _between(
    blueprint: ShortcutBlueprint, weights: np.ndarray, units: np.ndarray
) -> np.ndarray:
    """Return S[k, l], the map from the output of layer l to the input of layer k."""
    n, depth, d = blueprint.shortcut, len(weights), blueprint.width
    between = np.zeros((depth, depth, d, d))
    for start in range(depth):
        carried, home = np.eye(d), start // n
        for layer in range(start + 1, (home + 1) * n):
            between[layer, start] = carried
            carried = weights[layer] @ carried
        for r in range(home + 1, blueprint.units):
            inner = carried
            for layer in range(r * n, (r + 1) * n):
                between[layer, start] = inner
                inner = weights[layer] @ inner
            carried = units[r] @ carried
    return between


def _checked(
    blueprint: ShortcutBlueprint, weights: Numbers, moments: Moments
) -> np.ndarray:
    if not blueprint.linear:
        raise ConfigError(
            f"activations ({blueprint.pre}, {blueprint.mid}, {blueprint.post}) and "
            f"bias={blueprint.bias}: moments suffice for linear networks without "
            "biases only; measure this one with instruments.hessian"
        )
    wanted = (blueprint.depth, blueprint.width, blueprint.width)
    weights = as_numbers("weights", weights, "depth", "width", "width")
    if weights.shape != wanted or moments.width != blueprint.width:
        raise ConfigError(
            f"weights of shape {weights.shape} and moments of width {moments.width}: "
            f"the blueprint wants {wanted} and width {blueprint.width}"
        )
    return weights

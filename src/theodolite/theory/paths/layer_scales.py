r"""Moments of layers of a wide residual network, and losses of two homogeneous parts.

$L = L_m + L_p$ with $L_r(w) = \hat\lambda_r \sum x_{i_1 \dots i_r} w_{i_1} \cdots
w_{i_r}$, $\hat\lambda_r$ the product of $\lambda_l / \sigma_l$ over the $r$ layers of a
path: one skip passes over $p - m$ layers, so that the scales of the other $m$ multiply
both parts.
"""

from dataclasses import dataclass

import numpy as np

from theodolite.core import ConfigError, Numbers, as_integer, as_numbers, convert_fields

_NODES = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerSizes:
    r"""Moments of layers 1 to p of a wide network at initialisation.

    Attributes:
        square: $E[N_l(x)^2]$ of a unit.
        mean: $E[N_l(x)]$.
        overlap: $E[N_l(x) N_l(x')]$ of two independent inputs.
        deviation: $\sigma_l$, which divides the layer's ReLU outputs.
    """

    square: np.ndarray
    mean: np.ndarray
    overlap: np.ndarray
    deviation: np.ndarray


def scalar_norm_sizes(depth: int) -> LayerSizes:
    r"""Return the sizes of $N_{l+1} = N_l + R(W N_l)/\sigma_{l+1}$, with $N_0 = 0$.

    Inputs are standard normal, weights have variance 1/fan-in and the width goes to
    infinity. Outputs of ReLU have a mean, and $N_l \geq 0$, so that their product
    counts: with $q = E N^2$, $M = E N$,

    $$q' = q + \frac{q}{2\sigma^2} + \frac{2 M}{\sigma} \sqrt{\frac{q}{2\pi}},$$

    where a layer's input enters only by $q$, $M$ and the overlap $c$ of two inputs;
    $\sigma$ is the mean over units of $\mathrm{std}\,R(\sqrt{c}\,u + \sqrt{q-c}\,v)$
    over $v$.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, section 4.1,
        where $q' = 1 + q$ is printed.

    Example:
        >>> sizes = scalar_norm_sizes(2)
        >>> sizes.square.round(3), sizes.deviation.round(3)
        (array([1.467, 4.834]), array([0.584, 0.575]))
    """
    depth = as_integer("depth", depth, 1, 1_000_000)
    # The first layer's input has unit variance and no overlap, and there is no skip.
    square, overlap = 1.0, 0.0
    sums = np.zeros(3)
    rows = []
    for _ in range(depth):
        deviation = _deviation(square, overlap)
        mean = np.sqrt(square / (2 * np.pi)) / deviation
        cross = 2 * sums[1] * mean
        sums += (
            square / 2 / deviation**2 + cross,
            mean,
            _product(square, overlap) / deviation**2 + cross,
        )
        square, overlap = float(sums[0]), float(sums[2])
        rows.append((*sums, deviation))
    square, mean, overlap, deviation = np.array(rows).T
    return LayerSizes(square=square, mean=mean, overlap=overlap, deviation=deviation)


def _product(square: float, overlap: float) -> float:
    r"""Return $E[R(h) R(h')]$ of normal numbers with these moments."""
    angle = np.arccos(np.clip(overlap / square, -1.0, 1.0))
    shape = np.sin(angle) + (np.pi - angle) * np.cos(angle)
    return square * float(shape) / (2 * np.pi)


def _deviation(square: float, overlap: float) -> float:
    """Return the mean over units of the deviation over inputs."""
    from scipy.special import ndtr

    u, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    centre, spread = np.sqrt(overlap) * u, np.sqrt(square - overlap)
    t = centre / spread
    density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    first = centre * ndtr(t) + spread * density
    second = (centre**2 + spread**2) * ndtr(t) + centre * spread * density
    return float(weights @ np.sqrt(np.maximum(second - first**2, 0.0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoDegreeLoss:
    r"""A loss of degrees $m < p$ with one scale per layer.

    Attributes:
        shallow: Tensor of $m$ axes of one length.
        deep: Tensor of $p$ axes of the same length.
        scales: $\lambda_l / \sigma_l$ with $\sigma_l$ held, of $p$ layers; the first
            $m$ are not skipped.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, equation 21;
        equation 24 with all scales 1.

    Example:
        >>> loss = TwoDegreeLoss(shallow=np.ones(1), deep=np.ones((1, 1)),
        ...                      scales=np.ones(2))
        >>> loss.parts([3.0]).deep_gradient
        array([6.])
    """

    shallow: np.ndarray
    deep: np.ndarray
    scales: np.ndarray

    def __post_init__(self) -> None:
        tensor = ("units", ...)
        convert_fields(self, shallow=tensor, deep=tensor, scales=("layers",))
        m, p = self.degrees
        lengths = {*np.shape(self.shallow), *np.shape(self.deep)}
        if not 1 <= m < p or len(lengths) != 1:
            raise ConfigError(
                f"tensors of shapes {np.shape(self.shallow)} and {np.shape(self.deep)} "
                "make no loss of two degrees: pass the one of fewer axes first, all "
                "axes of one length"
            )
        if np.shape(self.scales) != (p,) or not np.all(self.scales):
            raise ConfigError(
                f"scales {np.asarray(self.scales).tolist()} for {p} layers: pass one "
                "number per layer, none of them zero"
            )

    @property
    def degrees(self) -> tuple[int, int]:
        """The degrees m and p."""
        return np.ndim(self.shallow), np.ndim(self.deep)

    def parts(self, weights: Numbers) -> "Parts":
        """Return both parts with their gradients at some weights."""
        w = as_numbers("weights", weights, len(self.shallow))
        m, p = self.degrees
        low, high = np.prod(self.scales[:m]), np.prod(self.scales)
        return Parts(
            shallow=low * _value(self.shallow, w),
            deep=high * _value(self.deep, w),
            shallow_gradient=low * _gradient(self.shallow, w),
            deep_gradient=high * _gradient(self.deep, w),
            degrees=(m, p),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    r"""The two parts of a loss and their gradients at one point.

    Attributes:
        shallow: $L_m$.
        deep: $L_p$.
        shallow_gradient: $g_m$.
        deep_gradient: $g_p$.
        degrees: $m$ and $p$.
    """

    shallow: float
    deep: float
    shallow_gradient: np.ndarray
    deep_gradient: np.ndarray
    degrees: tuple[int, int]

    @property
    def gradient(self) -> np.ndarray:
        """The gradient of the whole loss."""
        return self.shallow_gradient + self.deep_gradient

    def scale_force(self, scale: float, *, skipped: bool) -> float:
        r"""Return $\frac{d}{d\mu} \partial L/\partial\lambda_l$ at $w - \mu g$.

        $-\|g\|^2/\lambda_l$ for a layer that no skip passes over, and
        $-g_p^T g/\lambda_l$ for the others: a step of the weights gives the derivative
        the sign of $-\lambda_l$, so that $\lambda_l$ grows in magnitude.
        """
        reached = self.deep_gradient if skipped else self.gradient
        return -float(reached @ self.gradient) / scale

    def euler(self) -> float:
        r"""Return $C\,\partial L/\partial C = m L_m + p L_p$ of scaled weights."""
        m, p = self.degrees
        return m * self.shallow + p * self.deep

    def norm_force(self, size: float) -> float:
        r"""Return $\frac{d}{d\mu} \partial L/\partial C$ at $w - \mu g$.

        $-\frac{1}{C}(m\|g_m\|^2 + p\|g_p\|^2 + (m+p)\,g_p^T g_m)$ where
        $\partial L/\partial C = 0$.
        """
        m, p = self.degrees
        pull = m * self.shallow_gradient + p * self.deep_gradient
        return -float(pull @ self.gradient) / size


def least_norm_force(
    shallow_norm: float, deep_norm: float, *, shallow: int, deep: int
) -> float:
    r"""Return the least bracket of ``norm_force`` over all angles of the gradients.

    $(a - b)(m a - p b)$ for $a = \|g_m\|$ and $b = \|g_p\|$, met by opposite gradients:
    positive exactly if $b > a$ or $b < (m/p)\,a$.

    Example:
        >>> least_norm_force(1.0, 0.8, shallow=2, deep=4) < 0
        True
    """
    low, high = float(shallow_norm), float(deep_norm)
    return (low - high) * (int(shallow) * low - int(deep) * high)


def _value(tensor: np.ndarray, w: np.ndarray) -> float:
    for _ in range(tensor.ndim):
        tensor = tensor @ w
    return float(tensor)


def _gradient(tensor: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the gradient: for each axis contract all others with w, then sum."""
    total = np.zeros_like(w)
    for axis in range(tensor.ndim):
        rest = np.moveaxis(tensor, axis, 0)
        for _ in range(tensor.ndim - 1):
            rest = rest @ w
        total += rest
    return total

r"""Losses of two homogeneous parts, and what drives their scales.

$L = L_m + L_p$ with $L_r(w) = \hat\lambda_r \sum x_{i_1 \dots i_r} w_{i_1} \cdots
w_{i_r}$, $\hat\lambda_r$ the product of $\lambda_l / \sigma_l$ over the $r$ layers of a
path: one skip passes over $p - m$ layers, so that the scales of the other $m$ multiply
both parts.
"""

from dataclasses import dataclass

import numpy as np

from theodolite.core import ConfigError, Numbers, as_numbers, hold_numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoDegreeLoss:
    r"""A loss of degrees $m < p$ with one scale a layer.

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
        hold_numbers(self, shallow=tensor, deep=tensor, scales=("layers",))
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
                "number a layer, none of them zero"
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

    def __post_init__(self) -> None:
        hold_numbers(self, shallow_gradient=("units",), deep_gradient=("units",))

    @property
    def gradient(self) -> np.ndarray:
        """The gradient of the whole loss."""
        return self.shallow_gradient + self.deep_gradient

    def scale_force(self, scale: float, *, skipped: bool) -> float:
        r"""Return $\frac{d}{d\mu} \partial L/\partial\lambda_l$ at $w - \mu g$.

        $-\|g\|^2/\lambda_l$ for a layer that no skip passes over, and
        $-g_p^T g/\lambda_l$ for one of the others: a step of the weights turns the
        derivative against the sign of $\lambda_l$, which then grows in magnitude.
        """
        reached = self.deep_gradient if skipped else self.gradient
        return -float(reached @ self.gradient) / scale

    def euler(self) -> float:
        r"""Return $C\,\partial L/\partial C = m L_m + p L_p$ of scaled weights."""
        m, p = self.degrees
        return m * self.shallow + p * self.deep

    def euler_normalised(self, mean_degree: float) -> float:
        r"""Return $C\,\partial L/\partial C$ where coefficients keep norm one.

        $\sum_r (r - \bar r) L_r$ with $\bar r = \sum_r r\,\epsilon_r^2$.
        """
        return self.euler() - mean_degree * (self.shallow + self.deep)

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
    r"""Return the least bracket of the norm's force over all angles of the gradients.

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
    """Sum over the axes of what is left when all the others meet the weights."""
    total = np.zeros_like(w)
    for axis in range(tensor.ndim):
        rest = np.moveaxis(tensor, axis, 0)
        for _ in range(tensor.ndim - 1):
            rest = rest @ w
        total += rest
    return total

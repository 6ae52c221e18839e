r"""The kernel that turns quadrature nodes into a density, its grid and its bands.

The kernel is a normal curve of width $h$ about every node, reflected at the lowest and
the highest node, so that the density is zero outside of the spectrum: below zero, say,
for a positive semidefinite matrix. Its width is the resolution of the steps on the
unconverged part of the spectrum. Each converged outlier uses up one step, and the other
steps act as a polynomial on a shorter interval.

Bands hold at all points at once. Pointwise intervals of confidence $1 - \alpha$ hold at
all points together less often. How much less is known here: for $P$ normal vectors the
shares of the eigenvectors are Dirichlet distributed, so whole curves can be drawn, with
the measured rule as the spectrum. We take the smallest tail probability of each drawn
curve. The $\alpha$ quantile of these, used as the tail at every point, gives a band
that holds at all points with confidence $1 - \alpha$.
"""

from dataclasses import dataclass

import numpy as np

from theodolite.core import ConfigError, stream

from ..solvers.quadrature import Quadrature
from .model_instruments import check_count

# Curves drawn beyond the quantile: 25 give it to a fifth of its value.
_BEYOND, _MOST = 25, 4000


def joint_level(
    values: np.ndarray,
    weights: np.ndarray,
    count: int,
    *,
    level: float,
    slack: float = 1e-12,
) -> float:
    r"""Return the confidence per point that gives ``level`` at all points together.

    Args:
        values: $f(\theta_i) \ge 0$, points along the first axis, nodes along the last.
        weights: Of the nodes; they sum to 1.
        count: Vectors times order.
        level: Confidence wanted at all points at once.
        slack: By how much the bands are wider than sampling error requires.
    """
    from scipy.special import betainc

    draws = int(min(max(_BEYOND / (1 - level), 200), _MOST))
    shape = np.maximum(count * weights / 2, 1e-12)
    drawn = stream(0, "joint level").standard_gamma(shape, size=(draws, len(shape)))
    drawn /= np.maximum(drawn.sum(axis=1, keepdims=True), 1e-300)
    centre = values @ weights
    varies = (centre > 0) & (centre < values.max(axis=1, initial=0.0) * (1 - 1e-12))
    if not varies.any():
        return level
    values, centre = values[varies], centre[varies]
    curves = drawn @ values.T
    # A smooth function is matched to a projector, as for the bands.
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(curves > 0, drawn @ (values**2).T / curves, 1.0)
    scale = np.maximum(scale, 1e-300)
    truth, seen = np.clip(centre / scale, 0, 1), np.clip(curves / scale, 0, 1)
    below = betainc(count * truth / 2, count * (1 - truth) / 2, seen)
    tails = 2 * np.minimum(below, 1 - below)
    tails[np.abs(curves - centre) <= slack] = 1.0
    tail = float(np.quantile(tails.min(axis=1), 1 - level, method="lower"))
    return 1 - min(max(tail, 1e-9), 1 - level)


# A polynomial of degree 2m follows a normal curve of width 1.5 reach / m to 1e-4 of its
# peak (coefficients fall as exp(−(2m·width/reach)²/2)); narrower, quadrature shows.
FOLLOWED = 1e-4
_RESOLVED = 1.5
# A node counts as converged for a kernel a hundred times as wide as its residual.
_STILL = 0.01
# An eigenvalue of a dense matrix beyond so many interquartile ranges is an outlier.
_APART = 3.0
# The narrowest kernel, as a share of the spectrum.
_NARROWEST = 1e-3
# Rounding allowance beyond the ends.
_ROUNDING = 1e-9
# Kernel widths evaluated to each side of a node.
_SIDES = 4.0


@dataclass(frozen=True)
class Kernel:
    """Normal curves, reflected at the ends of the spectrum.

    Attributes:
        width: Their standard deviation.
        low: Lower end, where they are reflected; equal ends reflect nothing.
        high: Upper end.
    """

    width: float
    low: float
    high: float

    @property
    def slack(self) -> float:
        """Largest error of quadrature on the reflected curve."""
        return 2 * FOLLOWED / (self.width * np.sqrt(2 * np.pi))

    def __call__(self, points: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Return the curve of every node at every point, points on the first axis."""
        x = points.reshape(-1, *[1] * nodes.ndim)
        if not self.high > self.low:
            return self._normal(x - nodes)
        period, total = (
            2 * (self.high - self.low),
            np.zeros(np.broadcast(x, nodes).shape),
        )
        folds = int(np.ceil(6 * self.width / period))
        for shift in period * np.arange(-folds, folds + 1):
            total += self._normal(x - nodes - shift)
            total += self._normal(x - (2 * self.low - nodes) - shift)
        return np.where((x >= self.low) & (x <= self.high), total, 0.0)

    def _normal(self, distance: np.ndarray) -> np.ndarray:
        z = distance / self.width
        return np.exp(-(z**2) / 2) / (self.width * np.sqrt(2 * np.pi))


def kernel_of(
    rule: Quadrature, width: float | None, steps: int, *, exact: bool
) -> Kernel:
    """Return the kernel of a rule, of the given width or of the width it resolves."""
    if width is not None and not width > 0:
        raise ConfigError(f"width is {width!r}: pass a number above 0, or None")
    if not rule.nodes.size:
        return Kernel(float(width or 1.0), 0.0, 0.0)
    low, high = float(rule.nodes.min()), float(rule.nodes.max())
    if width is None:
        resolved = _of_spread(rule, steps) if exact else _of_residuals(rule, steps)
        width = max(resolved, _NARROWEST * (high - low))
        width = width or max(1e-3 * rule.scale, 1e-12)
    if high > low:  # a node at the end counts as inside, even if rounded
        off = _ROUNDING * (high - low) + 4 * rule.noise
        low, high = low - off, high + off
    return Kernel(float(width), low, high)


def _of_residuals(rule: Quadrature, steps: int) -> float:
    """Return the width that the steps resolve, for unconverged eigenvalues."""
    nodes = rule.nodes
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = np.abs(rule.couplings) / np.sqrt(rule.weights)
    residuals = np.where(rule.weights > 0, residuals, 0.0)
    width = _RESOLVED * float(np.ptp(nodes)) / steps
    for _ in range(4):  # for a narrower kernel fewer nodes count as converged
        moving = nodes[residuals > _STILL * width]
        if not moving.size:
            return width
        outside = (nodes < moving.min()) | (nodes > moving.max())
        left = steps - int((outside & (rule.weights > 0)).sum(axis=1).max())
        width = min(width, _RESOLVED * float(np.ptp(moving)) / max(left, 1))
    return width


def _of_spread(rule: Quadrature, steps: int) -> float:
    """Return the width that as many steps would resolve, without outliers."""
    nodes = rule.nodes[0]
    first, third = np.quantile(nodes, [0.25, 0.75])
    fence = _APART * (third - first)
    bulk = nodes[(nodes >= first - fence) & (nodes <= third + fence)]
    apart = min(len(nodes) - len(bulk), steps // 2)
    return _RESOLVED * float(np.ptp(bulk)) / (steps - apart)


def points_of(grid: np.ndarray | int, rule: Quadrature, kernel: Kernel) -> np.ndarray:
    """Return the given points, or so many where the density is not zero."""
    if isinstance(grid, np.ndarray):
        if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all():
            raise ConfigError(
                f"grid has shape {grid.shape}: pass a list of finite points, or how "
                "many to lay out"
            )
        return grid.astype(np.float64)
    check_count("grid", grid, 2)
    if not rule.nodes.size:
        return np.zeros(grid)
    reach = _SIDES * kernel.width
    low, high = kernel.low, kernel.high
    if not high > low:
        return np.linspace(low - reach, high + reach, grid)
    pieces = _pieces(np.sort(rule.pooled[0]), reach, low, high)
    even = high - low <= kernel.width * (grid - 1) or len(pieces) > grid // 8
    return np.linspace(low, high, grid) if even else _laid(pieces, grid)


def _pieces(
    nodes: np.ndarray, reach: float, low: float, high: float
) -> list[tuple[float, float]]:
    """Return the intervals near a node, in order."""
    breaks = np.flatnonzero(np.diff(nodes) > 2 * reach)
    starts = nodes[np.r_[0, breaks + 1]] - reach
    ends = nodes[np.r_[breaks, len(nodes) - 1]] + reach
    return [
        (max(low, float(start)), min(high, float(end)))
        for start, end in zip(starts, ends, strict=True)
    ]


def _laid(pieces: list[tuple[float, float]], count: int) -> np.ndarray:
    """Place points evenly in intervals, by length, with a minimum in each."""
    lengths = np.array([end - start for start, end in pieces])
    spare = count - 8 * len(pieces)
    numbers = 8 + np.floor(spare * lengths / lengths.sum()).astype(int)
    numbers[int(np.argmax(lengths))] += count - int(numbers.sum())
    return np.concatenate(
        [np.linspace(*piece, n) for piece, n in zip(pieces, numbers, strict=True)]
    )

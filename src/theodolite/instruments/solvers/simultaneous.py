r"""Bands that hold at all points at once.

An interval at each of many points, of confidence $1 - \alpha$ each, holds at all of
them less often. How much less depends on how the points hang together, which is known
here: for $P$ normal vectors the shares of the eigenvectors are Dirichlet distributed,
so that whole curves can be drawn, with the measured rule for the spectrum. The smallest
tail probability along each drawn curve is noted; its $\alpha$ quantile, used as the
tail at every point, makes a band that holds at all of them with confidence
$1 - \alpha$.
"""

import numpy as np

from theodolite.core import stream

# Curves drawn beyond the quantile: 25 place it to a fifth of itself.
_BEYOND, _MOST = 25, 4000


def joint_level(
    values: np.ndarray,
    weights: np.ndarray,
    count: int,
    *,
    level: float,
    slack: float = 1e-12,
) -> float:
    r"""Return the confidence at each point that makes ``level`` at all of them.

    Args:
        values: $f(\theta_i) \ge 0$, points along the first axis, nodes along the last.
        weights: Of the nodes; they sum to 1.
        count: Vectors times order.
        level: Confidence wanted at all points at once.
        slack: By how much the bands are wider than chance asks.
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
    found = drawn @ values.T
    # A smooth function is matched to a projector, as the bands are, from the curve.
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(found > 0, drawn @ (values**2).T / found, 1.0)
    scale = np.maximum(scale, 1e-300)
    truth, seen = np.clip(centre / scale, 0, 1), np.clip(found / scale, 0, 1)
    below = betainc(count * truth / 2, count * (1 - truth) / 2, seen)
    tails = 2 * np.minimum(below, 1 - below)
    tails[np.abs(found - centre) <= slack] = 1.0
    tail = float(np.quantile(tails.min(axis=1), 1 - level, method="lower"))
    return 1 - min(max(tail, 1e-9), 1 - level)
